//! A run in one file, with the page (S-31): what the API says of the run lies in the page, for whom it is shown without a server.

use crate::access::{Hosts, Tokens};
use crate::app::App;
use crate::call::Call;
use crate::drives::Drives;
use crate::feed::Feeds;
use crate::kept::Kept;
use crate::look::{self, threads};
use crate::metrics::Metrics;
use crate::page;
use crate::problem::Problem;
use crate::reader::Reader;
use crate::routes::{self, Handler};
use crate::webhooks::Webhooks;
use hyper::{HeaderMap, Method};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use selvedge_dialects::DocumentLimits;
use selvedge_engine::{Thread, ThreadView};
use selvedge_host::options::RunOptions;
use selvedge_host::timeline::Followed;
use selvedge_host::{Config, Definitions, Error, Host, report, secrets, stores};
use selvedge_runtime::{Reading, graph_of};
use selvedge_store::Store;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

/// A page with a run inside.
#[derive(Clone, Debug)]
pub struct Sealed {
    /// The run's id.
    pub run: String,
    /// Events that are in it.
    pub events: u64,
    /// The page.
    pub html: String,
}

/// Makes the page of a run: read-only, and in need of nothing else. Keys are redacted as everywhere.
///
/// `progress` is told how far each of its steps is: what it does, how much of that is done, and of how much.
///
/// # Errors
/// There is no such run, or it can't be read.
pub fn sealed(
    host: &Host,
    store: Store,
    run: &str,
    progress: &dyn Fn(&str, u64, u64),
) -> Result<Sealed, Error> {
    let store = Arc::new(store);
    let run = stores::find_run(&store, run)?;
    let app = looking(host, &store);
    let said = Said { app: &app, run: &run, progress };
    let history = said.history().map_err(|problem| problem.error())?;
    let events = history.events;
    let inside = said.all(history).map_err(|problem| problem.error())?;
    let html = page::sealed(&app.shown(&inside.to_string()))?;
    Ok(Sealed { run, events, html })
}

/// What answers requests that look, and no others: there is no server.
fn looking(host: &Host, store: &Arc<Store>) -> App {
    let secrets = secrets::known(&Config::of_keys(&host.environment));
    let feeds = Arc::new(Feeds::new(Arc::clone(store), secrets.clone()));
    let host = host.clone().sharing(Arc::clone(store));
    let metrics = Arc::<Metrics>::default();
    let webhooks = Arc::<Webhooks>::default();
    let told = (Arc::clone(&feeds), Arc::clone(&metrics), Arc::clone(&webhooks));
    App {
        kept: Kept::new(Arc::clone(store)),
        drives: Arc::new(Drives::new(host.clone(), Arc::clone(store), told, 0)),
        feeds,
        metrics,
        webhooks,
        reader: Reader::default(),
        cataloguing: tokio::sync::Mutex::default(),
        tls: None,
        log: false,
        defaults: RunOptions::default(),
        documents: None,
        store: Arc::clone(store),
        hosts: Hosts::of(IpAddr::V4(Ipv4Addr::LOCALHOST), 0, false, false),
        tokens: Tokens::default(),
        secrets,
        limits: DocumentLimits::default(),
        host,
    }
}

/// What the API says of a run.
struct Said<'a> {
    app: &'a App,
    run: &'a str,
    progress: &'a dyn Fn(&str, u64, u64),
}

impl Said<'_> {
    /// All that the page asks for.
    fn all(&self, history: History) -> Result<Value, Problem> {
        let mut run = self.get("", "")?;
        // The page has threads by themselves.
        run.as_object_mut().and_then(|run| run.remove("threads"));
        let timeline = self.get("/timeline", "")?;
        let rows = timeline.get("nodes").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let names = rows.iter().filter_map(|node| node.get("name")?.as_str());
        let app = self.app;
        let written = Definitions::read(&app.host.environment, &app.store.run(self.run)?, &app.limits);
        let mut nodes = Map::new();
        let mut requests = Vec::new();
        // Of nodes that are asked for by name it is told what each of their calls was shown.
        let mut all = String::new();
        app.kept.look(self.run, None, |run, _| {
            let mut known = report::Nodes::of(&run.state, &run.timeline);
            for (done, name) in (0..).zip(names) {
                (self.progress)("looking at nodes", done, rows.len() as u64);
                let (node, sent) =
                    look::nodes::without_requests(run, &mut known, (self.run, name), written.as_ref())?;
                nodes.insert(name.to_owned(), node);
                requests.extend(sent.into_iter().map(|sent| (sent, name)));
                let _ = write!(all, "&node={}", quoted(name));
            }
            Ok(())
        })?;
        // In their order in the journal, so that each is a step from the one before, whichever nodes they are of.
        requests.sort_by_key(|(sent, _)| sent.n);
        for (done, (sent, name)) in (0..).zip(&requests) {
            (self.progress)("looking at requests", done, requests.len() as u64);
            if let Some(node) = nodes.get_mut(*name) {
                sent.put(app, self.run, node)?;
            }
        }
        Ok(json!({
            "run": run,
            "timeline": timeline,
            "explain": self.get("/explain", &all)?,
            "events": self.events()?,
            "threads": history.threads,
            "used": history.used,
            "nodes": nodes,
        }))
    }

    /// The answer to a request for something of the run.
    fn get(&self, what: &str, query: &str) -> Result<Value, Problem> {
        let path = format!("/v1/runs/{}{what}", quoted(self.run));
        let (route, parts) = routes::find(&Method::GET, &path)?;
        let Handler::Blocking(handler) = route.handler else {
            return Err(Error::internal(&format!("{path} is answered later")).into());
        };
        let call = Call::new(route.query, parts, query, HeaderMap::new())?;
        Ok(handler(self.app, &call)?.into_json())
    }

    fn events(&self) -> Result<Vec<Value>, Problem> {
        let store = &self.app.store;
        let names = selvedge_engine::State::new(graph_of(store, &store.run(self.run)?)?);
        let last = store.last_event(self.run)?;
        let events = store.journal(self.run, 1)?.map(|entry| {
            let entry = entry?;
            (self.progress)("writing events", entry.n, last);
            report::event(&names, &entry).map_err(|error| Error::internal(&error.to_string()).into())
        });
        events.collect()
    }

    fn history(&self) -> Result<History, Problem> {
        let Self { app, run, progress } = self;
        let mut reading = Reading::open(&app.store, run)?;
        let mut followed = Followed::new(reading.graph());
        let mut grown: BTreeMap<String, Grown> = BTreeMap::new();
        let (mut used, mut before) = (Vec::new(), None);
        let last = app.store.last_event(run)?;
        reading.records(1, last, |record| {
            let status = followed.state.status();
            followed.take(record);
            let n = followed.state.events();
            progress("reading events", n, last);
            let usage = followed.state.usage();
            if before.replace(usage) != Some(usage) {
                used.push((n, selvedge_runtime::usage(&followed.state)));
            }
            let view = followed.state.view();
            let mut look = |name: &str, thread: ThreadView<'_>| {
                let order = grown.len();
                let known =
                    grown.entry(name.to_owned()).or_insert_with(|| Grown { order, ..Grown::default() });
                if known.spans.last().is_none_or(|(_, end)| end.is_some()) {
                    known.spans.push((n, None));
                }
                known.follow(&thread, n, |from, to| threads::messages(&followed, &thread, from, to));
            };
            // To look at all threads after each event takes minutes where there are a thousand.
            if let Some(touched) = view.touched(&record.event, status) {
                touched.for_each(|(name, thread)| look(&name, thread));
                return;
            }
            let mut now = BTreeSet::new();
            for (name, thread) in view.threads() {
                look(&name, thread);
                now.insert(name.into_owned());
            }
            for (_, thread) in grown.iter_mut().filter(|(name, _)| !now.contains(*name)) {
                if let Some((_, end @ None)) = thread.spans.last_mut() {
                    *end = Some(n);
                }
            }
        })?;
        let mut grown: Vec<(String, Grown)> = grown.into_iter().collect();
        grown.sort_by_key(|(_, thread)| thread.order);
        let threads = grown
            .into_iter()
            .map(|(name, thread)| (name, json!({"messages": thread.messages, "there": thread.spans})));
        Ok(History { threads: threads.collect(), used, events: last })
    }
}

fn quoted(name: &str) -> String {
    utf8_percent_encode(name, NON_ALPHANUMERIC).to_string()
}

/// What a thread has ever said.
#[derive(Default)]
struct Grown {
    /// In an order that is that of the thread at each event, for the messages that it has then.
    messages: Vec<Value>,
    /// Which of them it has now.
    there: Vec<usize>,
    /// The thread as it was.
    was: Thread,
    /// The events from which on it was there, each with the one from which on it was not, as that of a subgraph between two rounds of a loop.
    spans: Vec<(u64, Option<u64>)>,
    /// How many there were before it.
    order: usize,
}

impl Grown {
    /// Takes over what event `n` has made of the thread; `read` gives messages of it, from one on and before another.
    fn follow(&mut self, thread: &ThreadView<'_>, n: u64, read: impl Fn(usize, usize) -> Vec<Value>) {
        let (now, len) = (thread.thread(), thread.len());
        // What is only added to, as most are, costs what is added.
        let (same, kept) = match now.behind(&self.was) {
            Some(_) => (self.there.len(), 0),
            None => {
                let (old, new): (Vec<_>, Vec<_>) = (self.was.iter().collect(), now.iter().collect());
                let same = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
                let (old, new) = (old.iter().skip(same).rev(), new.iter().skip(same).rev());
                (same, old.zip(new).take_while(|(old, new)| old == new).count())
            }
        };
        let behind = self.there.len() - kept;
        for gone in self.there.drain(same..behind) {
            if let Some(message) = self.messages.get_mut(gone) {
                set(message, "gone", n);
            }
        }
        let mut new = read(same, len - kept);
        new.iter_mut().for_each(|message| set(message, "n", n));
        let (place, added) = (self.there.get(same).copied().unwrap_or(self.messages.len()), new.len());
        self.there.iter_mut().skip(same).for_each(|at| *at += added);
        self.there.splice(same..same, place..place + added);
        self.messages.splice(place..place, new);
        self.was = now.clone();
    }
}

/// What the page shows as of any event.
struct History {
    /// All threads that there ever were, in the order in which they came, each message with the event that brought it, and the one that took it
    /// away (E-09).
    threads: Map<String, Value>,
    /// What the run had used, with the event from which on.
    used: Vec<(u64, Value)>,
    events: u64,
}

fn set(message: &mut Value, field: &str, n: u64) {
    message.as_object_mut().map(|fields| fields.insert(field.to_owned(), n.into()));
}
