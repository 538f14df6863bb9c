//! What people are asked, of all runs (S-25).

use crate::app::App;
use crate::call::Call;
use crate::problem::Problem;
use crate::reply::Reply;
use selvedge_host::{report, time};
use selvedge_runtime::{Clock, SystemClock};
use selvedge_store::{RunStatus, RunsPage};
use serde_json::{Value, json};

/// Runs that are looked at, where nothing else is asked for.
const RUNS: u64 = 100;

/// `GET /v1/asks`.
pub(crate) fn list(app: &App, call: &Call) -> Result<Reply, Problem> {
    let limit = u32::try_from(call.number("limit").unwrap_or(RUNS)).unwrap_or(u32::MAX);
    let (mut asks, now) = (Vec::new(), SystemClock.now_ms());
    // Those that wait for an answer, and those that go on meanwhile.
    for status in [RunStatus::Waiting, RunStatus::Running] {
        let page = RunsPage { status: Some(status), limit, ..RunsPage::default() };
        for info in app.store.page_of_runs(&page)?.runs.sound {
            // A run that can't be read is told of where it is looked at.
            let _ = app.kept.look(&info.id, None, |run, _| {
                let open = run.state.asks().iter().filter(|_| run.state.ended().is_none());
                asks.extend(open.map(|(id, ask)| {
                    let mut object = report::asked(&run.state, id, ask, Some(now));
                    object.insert("run_id".to_owned(), info.id.as_str().into());
                    object.insert("run_name".to_owned(), info.name.as_str().into());
                    object.insert("dialect".to_owned(), info.dialect.as_str().into());
                    object.insert("started".to_owned(), time::rfc3339(info.started_ms).into());
                    let question = run.timeline.question(id);
                    let asked = question.map(|question| time::rfc3339(question.asked.at));
                    object.insert("asked".to_owned(), json!(asked));
                    Value::Object(object)
                }));
                Ok(())
            });
        }
    }
    Ok(Reply::json(json!({"asks": asks})))
}
