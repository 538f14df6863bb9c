//! Which requests there are: one table, for the router and for the description (S-03, S-08).

use crate::access::Role;
use crate::act;
use crate::act::bodies::{Checked, Forked, Message, Resumed, Said, Start};
use crate::app::App;
use crate::call::{Call, decoded};
use crate::look;
use crate::params::{Kind, Param, Parts};
use crate::problem::Problem;
use crate::reply::{Later, Reply};
use hyper::{Method, StatusCode};
use schemars::{JsonSchema, Schema, schema_for};
use std::sync::Arc;

/// Who answers a request.
#[derive(Clone, Copy)]
pub(crate) enum Handler {
    /// Who reads the store, on a thread that may wait.
    Blocking(fn(&App, &Call) -> Result<Reply, Problem>),
    /// Who waits for others.
    Async(fn(Arc<App>, Call) -> Later),
}

/// A request that there is.
pub(crate) struct Route {
    pub(crate) method: Method,
    /// Its path, with the names of its parts in braces.
    pub(crate) path: &'static str,
    /// What it does, in a line.
    pub(crate) about: &'static str,
    /// Who may.
    pub(crate) role: Role,
    pub(crate) query: &'static [Param],
    /// The schema of its body, if it has one.
    pub(crate) body: Option<fn() -> Schema>,
    /// Fields that its answer always has.
    pub(crate) gives: &'static [&'static str],
    pub(crate) handler: Handler,
}

const fn param(name: &'static str, kind: Kind, about: &'static str) -> Param {
    Param { name, kind, required: false, about }
}

const AT: Param = param("at", Kind::Event, "as of this event; else now");
const BRIEF: Param = param(
    "brief",
    Kind::OneOf(&["yes", "no"]),
    "threads, data_out and results, which grow with it, are null; else no",
);
const STATUSES: &[&str] = &["running", "waiting", "completed", "failed", "cancelled"];

const fn get(
    path: &'static str,
    about: &'static str,
    query: &'static [Param],
    gives: &'static [&'static str],
    handler: fn(&App, &Call) -> Result<Reply, Problem>,
) -> Route {
    let (method, role, handler) = (Method::GET, Role::Viewer, Handler::Blocking(handler));
    Route { method, path, about, role, query, body: None, gives, handler }
}

const fn post(
    path: &'static str,
    about: &'static str,
    body: Option<fn() -> Schema>,
    gives: &'static [&'static str],
    handler: fn(Arc<App>, Call) -> Later,
) -> Route {
    let (method, role, handler) = (Method::POST, Role::Operator, Handler::Async(handler));
    Route { method, path, about, role, query: &[], body, gives, handler }
}

/// The schema of a body.
fn of<T: JsonSchema>() -> Schema {
    schema_for!(T)
}

/// Fields of a run (C-02), and what the list says of it.
const RUN: &[&str] = &[
    "run_id", "status", "output", "fault", "threads", "data_out", "results", "metadata", "joins", "asks",
    "scripted", "warnings", "usage", "name", "dialect", "started", "ended", "driven", "at", "events",
    "fork_of",
];

/// All of them.
pub(crate) static ROUTES: &[Route] = &[
    get(
        "/v1/runs",
        "The runs, latest first, a page at a time",
        &[
            param("status", Kind::OneOf(STATUSES), "only runs of this status"),
            param("dialect", Kind::Text, "only runs of documents of this dialect"),
            param("text", Kind::Text, "only runs with this in their names or ids"),
            param("parent", Kind::Text, "only runs that this one began"),
            param("children", Kind::OneOf(&["yes", "no"]), "with those that other runs began; else yes"),
            param("cursor", Kind::Text, "`next` of the page before"),
            param("limit", Kind::Number { most: 500 }, "at most so many; else 50"),
        ],
        &["runs", "next", "damaged"],
        look::runs::list,
    ),
    get("/v1/runs/{id}", "A run (C-02)", &[AT, BRIEF], RUN, look::runs::one),
    Route {
        method: Method::GET,
        path: "/v1/runs/{id}/events",
        about: "A run's events as they happen (Server-Sent Events), or a page of them where JSON is asked for",
        role: Role::Viewer,
        query: &[
            param("after", Kind::Event, "events behind this one; else all"),
            param("limit", Kind::Number { most: 1000 }, "of a page: at most so many; else 200"),
        ],
        body: None,
        gives: &["events", "next"],
        handler: Handler::Async(look::events::events),
    },
    get(
        "/v1/runs/{id}/timeline",
        "What happened when, by node",
        &[
            AT,
            param(
                "after",
                Kind::Event,
                "only nodes and frames that have changed behind this event; else all",
            ),
            param(
                "brief",
                Kind::OneOf(&["yes", "no"]),
                "nodes and frames as a picture needs them: without what says nothing; else no",
            ),
        ],
        &[
            "run_id", "name", "dialect", "status", "driven", "at", "events", "after", "begun", "zero",
            "until", "source", "threads", "frames", "nodes", "recovery",
        ],
        look::timeline::timeline,
    ),
    get("/v1/runs/{id}/threads", "A run's threads", &[AT], &["run_id", "at", "threads"], look::threads::list),
    get(
        "/v1/runs/{id}/threads/{name}",
        "A part of a thread",
        &[
            AT,
            param("from", Kind::Place, "the first message, from 0; negative from the end"),
            param("limit", Kind::Number { most: 1000 }, "at most so many; else 100"),
        ],
        &["run_id", "at", "thread", "of", "from", "next", "before", "mark", "messages"],
        look::threads::one,
    ),
    get(
        "/v1/runs/{id}/threads/{name}/readers",
        "Whose models were shown each message of a page of a thread (S-23)",
        &[
            AT,
            param("from", Kind::Place, "the first message, from 0; negative from the end"),
            param("limit", Kind::Number { most: 1000 }, "at most so many; else 100"),
        ],
        &["run_id", "at", "thread", "of", "from", "readers"],
        look::threads::readers,
    ),
    get(
        "/v1/runs/{id}/nodes/{node}",
        "A node: definition, requests as sent, what came of them",
        &[AT],
        &["run_id", "at", "node", "name", "calls", "fault", "definition", "place"],
        look::nodes::one,
    ),
    get(
        "/v1/runs/{id}/explain",
        "Whom each node waited for and why, whose messages it saw, and what its time went into (C-15)",
        &[
            AT,
            param(
                "node",
                Kind::Texts,
                "only this node, with each of its calls; several, where it is there several times",
            ),
            param(
                "afresh",
                Kind::OneOf(&["yes", "no"]),
                "only nodes that made calls again in a fork; else no",
            ),
        ],
        &["run_id", "at", "nodes", "recovery", "roles", "critical"],
        look::explain::explain,
    ),
    get(
        "/v1/runs/{id}/graph",
        "The compiled graph, where its nodes stand, and whom they wait for (C-13)",
        &[AT],
        &["run_id", "at", "graph", "nodes"],
        look::explain::graph,
    ),
    get(
        "/v1/diff",
        "What two runs have in common, what differs, and what each cost (C-15)",
        &[
            Param { required: true, ..param("a", Kind::Text, "a run") },
            param("b", Kind::Text, "another one; else `a` is a fork, and compared with its source"),
        ],
        &["a", "b", "shared", "same", "usage", "threads", "results", "metadata"],
        look::explain::diff,
    ),
    get(
        "/v1/asks",
        "What people are asked, of all runs",
        &[param("limit", Kind::Number { most: 500 }, "of at most so many runs; else 100")],
        &["asks"],
        look::asks::list,
    ),
    get("/v1/documents", "The documents that the server has", &[], &["documents"], look::documents::list),
    get(
        "/v1/documents/{name}",
        "One of them, with its inputs and its text",
        &[],
        &["name", "file", "dialect", "title", "description", "inputs", "text"],
        look::documents::one,
    ),
    post("/v1/runs", "Begins a run", Some(of::<Start>), RUN, act::begin::run),
    post(
        "/v1/documents/{name}/runs",
        "Begins a run of a named document",
        Some(of::<Start>),
        RUN,
        act::begin::named,
    ),
    post(
        "/v1/runs/{id}/fork",
        "Goes on from an event of a run as a new run",
        Some(of::<Forked>),
        RUN,
        act::begin::fork,
    ),
    post(
        "/v1/runs/{id}/fork/plan",
        "What a fork would do: it is not made (C-13)",
        Some(of::<Forked>),
        &["fork_of", "anew", "ends", "nodes", "asks", "saved"],
        act::begin::fork_plan,
    ),
    Route {
        method: Method::GET,
        path: "/v1/catalogue",
        about: "What names of tools mean in runs of this server: of its folders, commands, MCP servers and the library",
        // It may start programs.
        role: Role::Operator,
        query: &[],
        body: None,
        gives: &["tools", "warnings"],
        handler: Handler::Async(look::tools::catalogue),
    },
    get("/v1/tools", "The tools of the library", &[], &["tools"], look::tools::list),
    get(
        "/v1/tools/{name}",
        "A tool: its code, its recorded calls, its versions",
        &[param(
            "version",
            Kind::Text,
            "this version, by the beginning of its hash; else what the name means",
        )],
        &[
            "name",
            "version",
            "state",
            "current",
            "effects",
            "description",
            "code",
            "input_schema",
            "metadata",
            "calls",
            "versions",
        ],
        look::tools::one,
    ),
    post("/v1/runs/{id}/cancel", "Ends a run", None, RUN, act::tell::cancel),
    post(
        "/v1/runs/{id}/resume",
        "Goes on with a run that has stopped",
        Some(of::<Resumed>),
        RUN,
        act::tell::resume,
    ),
    post("/v1/runs/{id}/messages", "Tells an agent something", Some(of::<Message>), RUN, act::tell::message),
    post("/v1/runs/{id}/asks/{ask}", "Answers an ask", Some(of::<Said>), RUN, act::tell::answer),
    post(
        "/v1/check",
        "What is found about a document without running it",
        Some(of::<Checked>),
        &["diagnostics"],
        act::check::check,
    ),
];

/// The route of a request, and what stands in its path; or why there is none.
pub(crate) fn find(method: &Method, path: &str) -> Result<(&'static Route, Parts), Problem> {
    let mut others = Vec::new();
    for route in ROUTES {
        let Some(parts) = fits(route.path, path) else { continue };
        // HEAD is GET without a body, which the connection leaves out.
        if route.method == *method || *method == Method::HEAD && route.method == Method::GET {
            let parts = parts.into_iter().map(|(name, value)| Ok((name, decoded(value)?)));
            return Ok((route, parts.collect::<Result<_, Problem>>()?));
        }
        others.push(route.method.as_str());
    }
    if others.is_empty() {
        let message = format!("there is nothing at {path}");
        return Err(Problem::new(StatusCode::NOT_FOUND, "S-03", "unknown-address", &message)
            .help("/v1/openapi.json has what there is"));
    }
    Err(Problem::method(path, &others.join(", "), method))
}

/// What stands in a path where a pattern has names, if it fits.
fn fits<'p>(pattern: &'static str, path: &'p str) -> Option<Vec<(&'static str, &'p str)>> {
    let mut parts = Vec::new();
    let (mut patterns, mut segments) = (pattern.split('/'), path.split('/'));
    loop {
        match (patterns.next(), segments.next()) {
            (None, None) => return Some(parts),
            (Some(pattern), Some(segment)) => {
                match pattern.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
                    Some(name) if !segment.is_empty() => parts.push((name, segment)),
                    None if pattern == segment => {}
                    _ => return None,
                }
            }
            _ => return None,
        }
    }
}
