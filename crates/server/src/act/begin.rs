//! Runs that begin: of a document, and of another run.

use crate::act::bodies::{Forked, Start};
use crate::app::App;
use crate::blocking::{BUG, blocking};
use crate::body::Fields;
use crate::call::Call;
use crate::look;
use crate::problem::Problem;
use crate::reply::{Later, Reply};
use hyper::StatusCode;
use hyper::header::{HeaderName, LOCATION};
use selvedge_host::options::RunOptions;
use selvedge_host::{Asked, Error, ForkOptions};
use selvedge_store::StoreError;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::path::PathBuf;
use std::sync::Arc;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// `POST /v1/runs`.
pub(crate) fn run(app: Arc<App>, call: Call) -> Later {
    Box::pin(async move {
        let (start, document) = call.with_document(&app.limits).await?;
        begin(app, &call, start, document).await
    })
}

/// `POST /v1/documents/{name}/runs`.
pub(crate) fn named(app: Arc<App>, call: Call) -> Later {
    Box::pin(async move {
        let (start, document): (Start, _) = call.with_document(&app.limits).await?;
        if start.document.is_some() || start.name.is_some() {
            return Err(Problem::bad("bad-body", "which document it is stands in the address"));
        }
        let name = Some(call.part("name").to_owned());
        begin(app, &call, Start { name, ..start }, document).await
    })
}

async fn begin(app: Arc<App>, call: &Call, start: Start, document: Option<String>) -> Result<Reply, Problem> {
    let asked = Asking::of(call, start.run_id.clone(), "")?;
    let read = |app: Arc<App>, id, digest| async move {
        let reading = Arc::clone(&app);
        app.reader.read(move || asked_run(&reading, (start, document), id, digest)).await
    };
    asked.once(&app, read).await
}

/// A run as the host is asked for it.
fn asked_run(
    app: &App,
    (start, document): (Start, Option<String>),
    id: Option<String>,
    digest: Option<String>,
) -> Result<Asked, Problem> {
    let chosen = start.options.0.options()?;
    let mut options = RunOptions {
        plan: start.plan,
        dialect: start.dialect,
        inputs: start.inputs,
        served: true,
        request: digest,
        ..app.defaults.clone().under(chosen)
    };
    let file = match (document, start.name) {
        (Some(document), None) => {
            options.given = Some(document);
            PathBuf::from("document.json")
        }
        (None, Some(name)) => app.documents()?.file(&name)?,
        _ => return Err(Problem::bad("bad-body", "a run has one of `document` and `name`")),
    };
    Ok(app.host.read(&file, options, id.as_deref())?)
}

/// `POST /v1/runs/{id}/fork`.
pub(crate) fn fork(app: Arc<App>, call: Call) -> Later {
    Box::pin(async move {
        let (fork, document): (Forked, _) = call.with_document(&app.limits).await?;
        let source = {
            let (app, id) = (Arc::clone(&app), call.part("id").to_owned());
            blocking(move || Ok(selvedge_host::stores::find_run(&app.store, &id)?)).await?
        };
        // As it was asked for: `@` means another run once this one is there.
        let asked = Asking::of(&call, fork.run_id.clone(), call.part("id"))?;
        let read = |app: Arc<App>, id, digest| {
            blocking(move || asked_fork(&app, &source, (fork, document), id, digest))
        };
        asked.once(&app, read).await
    })
}

/// `POST /v1/runs/{id}/fork/plan`.
pub(crate) fn fork_plan(app: Arc<App>, call: Call) -> Later {
    Box::pin(async move {
        let (fork, document): (Forked, _) = call.with_document(&app.limits).await?;
        let asked = {
            let (app, id) = (Arc::clone(&app), call.part("id").to_owned());
            blocking(move || {
                let source = selvedge_host::stores::find_run(&app.store, &id)?;
                asked_fork(&app, &source, (fork, document), None, None)
            })
            .await?
        };
        let found = app.host.dry_run(asked).await?;
        Ok(Reply::json(selvedge_host::report::forecast(&found)))
    })
}

/// A fork as the host is asked for it.
fn asked_fork(
    app: &App,
    source: &str,
    (fork, given): (Forked, Option<String>),
    id: Option<String>,
    digest: Option<String>,
) -> Result<Asked, Problem> {
    let chosen = fork.options.0.options()?;
    if given.is_none() && (fork.plan.is_some() || fork.dialect.is_some()) {
        let message = "`plan` and `dialect` say how to read a document, and there is none";
        return Err(Problem::bad("bad-body", message));
    }
    let document = given.as_ref().map(|_| PathBuf::from("document.json"));
    let (inputs, plan, dialect) = (fork.inputs, fork.plan, fork.dialect);
    let over = RunOptions { inputs, plan, dialect, given, served: true, request: digest, ..chosen };
    let messages = fork.messages.into_iter().map(|Fields(edited)| (edited.event, edited.text)).collect();
    let options = ForkOptions { at: fork.at, document, messages, id, over };
    Ok(app.host.source(source, options)?)
}

/// A request for a new run.
struct Asking {
    /// The id that was asked for, or the one that follows from the request's key.
    id: Option<String>,
    /// What was asked for, where it may be asked for again.
    digest: Option<String>,
}

impl Asking {
    fn of(call: &Call, id: Option<String>, about: &str) -> Result<Self, Problem> {
        let key = call.headers.get(IDEMPOTENCY_KEY);
        let key = key.map(|key| {
            let key = key.to_str().ok().filter(|key| !key.is_empty() && key.len() <= 255);
            key.ok_or_else(|| Problem::bad("bad-key", "an Idempotency-Key has 1 to 255 characters of ASCII"))
        });
        // The same key means the same run, and no other run has its id.
        let of_key = key.transpose()?.map(|key| format!("key-{}", hex(&[b"key", key.as_bytes()], 12)));
        let id = id.or(of_key);
        let digest = id.is_some().then(|| hex(&[about.as_bytes(), b"\n", &call.body], 32));
        Ok(Self { id, digest })
    }

    /// Begins what `read` makes of it, unless that has begun.
    async fn once<R: Future<Output = Result<Asked, Problem>>>(
        self,
        app: &Arc<App>,
        read: impl FnOnce(Arc<App>, Option<String>, Option<String>) -> R,
    ) -> Result<Reply, Problem> {
        let Self { id, digest } = self;
        let making = id.as_deref().map(|id| app.drives.making(id));
        let making = match making {
            Some(making) => Some(making.lock_owned().await),
            None => None,
        };
        if let Some(id) = &id
            && let Some(reply) = known(app, id, digest.as_deref()).await?
        {
            return Ok(reply);
        }
        app.drives.room()?;
        let asked = read(Arc::clone(app), id, digest).await?;
        let ready = app.host.prepare(asked).await?;
        // What is recorded is driven, also where whoever asked for it is gone by then.
        let app = Arc::clone(app);
        let begun = tokio::spawn(async move {
            let begun = app.host.begin(ready).await?;
            let forked = begun.fork.is_some();
            let answered = move || {
                let (id, object) = (begun.id.clone(), look::runs::begun(&begun));
                app.drives.drive(begun);
                Ok(made(&id, object, StatusCode::CREATED))
            };
            // A fork has all that its source had, and its answer may be long.
            let answer = if forked { blocking(answered).await } else { answered() };
            drop(making);
            answer
        });
        begun.await.unwrap_or_else(|_| Err(Error::internal(BUG).into()))
    }
}

/// The run that was begun by the same request before.
async fn known(app: &Arc<App>, id: &str, digest: Option<&str>) -> Result<Option<Reply>, Problem> {
    let info = match app.store.run(id) {
        Ok(info) => info,
        Err(StoreError::UnknownRun { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    match (RunOptions::stored(&info.options).request, digest) {
        (Some(known), Some(digest)) if known == digest => {
            let (app, id) = (Arc::clone(app), id.to_owned());
            blocking(move || Ok(Some(made(&id, look::runs::object(&app, &id, None)?, StatusCode::OK)))).await
        }
        _ => {
            let message = format!("there is a run {id} already, and it was asked for otherwise");
            Err(Problem::new(StatusCode::CONFLICT, "S-07", "run-id-used", &message)
                .help("choose another run_id or Idempotency-Key, or none"))
        }
    }
}

/// A run that there is now, as C-02 has it.
fn made(id: &str, object: Value, status: StatusCode) -> Reply {
    Reply::json(object).status(status).header(LOCATION, &format!("/v1/runs/{id}"))
}

fn hex(parts: &[&[u8]], bytes: usize) -> String {
    let mut digest = Sha256::new();
    parts.iter().for_each(|part| digest.update(part));
    digest.finalize().iter().take(bytes).map(|byte| format!("{byte:02x}")).collect()
}
