//! C-15's object of two runs.

use super::{Change, Cost, Data, Diff, Is, Node, Shared, Side, Thread};
use selvedge_engine::{Message, StepResult, ThreadView};
use selvedge_runtime::report::{fault, usage, used};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Entries of a list, made one by one: together they can be as long as the runs are.
pub type Entries<'d> = Box<dyn Iterator<Item = Value> + 'd>;

impl Diff<'_> {
    /// What is said of the two runs (those that it is of, and what their journals begin with together) before the lists.
    pub fn head(&self, (a, b): (&Side, &Side), shared: Option<&Shared>) -> Value {
        json!({
            "a": side(a), "b": side(b), "shared": shared, "same": self.same(),
            "usage": {"a": usage(&a.state), "b": usage(&b.state)},
        })
    }

    /// The lists, by their names.
    pub fn lists<'d>(&'d self, sides: (&'d Side, &'d Side)) -> [(&'static str, Entries<'d>); 3] {
        let initial = self.initial.iter().map(|value| data("initial", value));
        let runtime = self.runtime.iter().map(|value| data("runtime", value));
        [
            ("threads", Box::new(self.threads.iter().map(thread))),
            ("results", Box::new(self.results.iter().map(move |node| result(sides, node)))),
            ("metadata", Box::new(initial.chain(runtime))),
        ]
    }
}

fn side(side: &Side) -> Value {
    let state = &side.state;
    let fork = side.info.fork.as_ref();
    json!({
        "run_id": side.info.id,
        "name": side.info.name,
        "dialect": side.info.dialect,
        "status": state.status(),
        "events": state.events(),
        "fork_of": fork.map(|point| json!({"run": point.run, "events": point.events})),
        "fault": state.view().fault().map(|found| fault(state, found)),
    })
}

fn thread(thread: &Thread<'_>) -> Value {
    let messages = &thread.messages;
    let count = |thread: &Option<ThreadView<'_>>| thread.as_ref().map(ThreadView::len);
    let (a, b) = match messages.changes.is_empty() {
        true => (Vec::new(), Vec::new()),
        false => (all(thread.a.as_ref()), all(thread.b.as_ref())),
    };
    let said = |list: &[&Arc<Message>], at: Option<usize>| {
        let at = at?;
        let mut object = json!(list.get(at)?);
        object.as_object_mut()?.insert("at".to_owned(), at.into());
        Some(object)
    };
    let change = |change: &Change| json!({"a": said(&a, change.a), "b": said(&b, change.b)});
    json!({
        "thread": thread.name,
        "is": messages.is,
        "same": messages.same,
        "messages": {"a": count(&thread.a), "b": count(&thread.b)},
        "changes": messages.changes.iter().map(change).collect::<Vec<_>>(),
    })
}

fn all<'s>(thread: Option<&ThreadView<'s>>) -> Vec<&'s Arc<Message>> {
    thread.into_iter().flat_map(ThreadView::iter).collect()
}

fn result((a, b): (&Side, &Side), node: &Node<'_>) -> Value {
    let mut object = json!({
        "node": node.name,
        "is": node.is,
        "usage": {"a": cost(&node.cost_a), "b": cost(&node.cost_b)},
    });
    if node.is != Is::Same
        && let Some(fields) = object.as_object_mut()
    {
        let of = |side: &Side, result: &Option<StepResult<'_>>| {
            result.as_ref().map(|result| outcome(side, result))
        };
        fields.insert("a".to_owned(), json!(of(a, &node.a)));
        fields.insert("b".to_owned(), json!(of(b, &node.b)));
    }
    object
}

fn outcome(side: &Side, result: &StepResult<'_>) -> Value {
    match result.error {
        Some(error) => json!({"fault": fault(&side.state, error)}),
        None => json!({"output": result.output}),
    }
}

/// What a node used: the shape of C-02's usage, with how often it began, how long it worked, and what it took instead.
fn cost(cost: &Cost) -> Value {
    let mut object = used(&cost.usage);
    if let Some(fields) = object.as_object_mut() {
        let own: [(&str, Value); 3] = [
            ("visits", cost.visits.into()),
            ("worked_ms", cost.worked_ms.into()),
            ("reused", cost.reused.into()),
        ];
        fields.extend(
            own.map(|(name, value)| (name.to_owned(), value)).into_iter().collect::<Map<String, Value>>(),
        );
        if let Some(from) = &cost.reused_from {
            fields.insert("reused_from".to_owned(), Value::from(&**from));
        }
    }
    object
}

fn data(layer: &str, data: &Data<'_>) -> Value {
    let mut object = json!({"layer": layer, "name": data.name, "is": data.is});
    if data.is != Is::Same
        && let Some(fields) = object.as_object_mut()
    {
        let sides = [("a", data.a), ("b", data.b)].into_iter();
        fields.extend(sides.filter_map(|(side, value)| Some((side.to_owned(), value?.clone()))));
    }
    object
}
