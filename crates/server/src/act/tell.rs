//! What is said to a run, whoever drives it (E-43): answers, messages, its end, and that it is to go on.

use crate::act::bodies::{Message, Resumed, Said};
use crate::app::App;
use crate::blocking::blocking;
use crate::call::Call;
use crate::look;
use crate::problem::Problem;
use crate::reply::{Later, Reply};
use selvedge_engine::PersonMessage;
use selvedge_host::options::RunOptions;
use selvedge_host::{Answer, Given};
use selvedge_runtime::Controls;
use serde_json::Value;
use std::sync::Arc;

/// `POST /v1/runs/{id}/asks/{ask}`.
pub(crate) fn answer(app: Arc<App>, call: Call) -> Later {
    Box::pin(async move {
        let said: Said = call.json(&app.limits).await?;
        let id = found(&app, &call).await?;
        let answer = Answer {
            ask: Some(call.part("ask").to_owned()),
            said: written(&said.answer),
            output: said.output.as_ref().map(Value::to_string),
            by: said.by,
            why: said.why,
        };
        match app.host.answer(&id, &answer).await {
            Ok(given) => heard(app, id, given).await,
            Err(error) if error.is("ask-answered") => match repeats(&app, &id, &answer).await? {
                true => shown(app, id).await,
                false => Err(error.into()),
            },
            Err(error) => Err(error.into()),
        }
    })
}

/// `POST /v1/runs/{id}/messages`.
pub(crate) fn message(app: Arc<App>, call: Call) -> Later {
    Box::pin(async move {
        let Message { text, to, by } = call.json(&app.limits).await?;
        let id = found(&app, &call).await?;
        let message = PersonMessage { text: text.into(), to: to.map(Into::into), by: by.map(Into::into) };
        let given = app.host.message(&id, &message).await?;
        heard(app, id, given).await
    })
}

/// Whoever drives the run has heard it; a run that nobody drives goes on here. The run as it is then.
async fn heard(app: Arc<App>, id: String, given: Given) -> Result<Reply, Problem> {
    if let Given::Alone(run) = given {
        app.drives.room()?;
        app.drives.go_on(run, &RunOptions::default()).await?;
    }
    shown(app, id).await
}

/// A text that is read as the JSON that it is; a text that could be taken for other JSON stands in quotes.
fn written(answer: &Value) -> String {
    match answer {
        Value::String(text) if serde_json::from_str::<Value>(text).is_err() => text.clone(),
        other => other.to_string(),
    }
}

/// Whether the same was answered before (S-07).
async fn repeats(app: &Arc<App>, id: &str, answer: &Answer) -> Result<bool, Problem> {
    let (app, id, answer) = (Arc::clone(app), id.to_owned(), answer.clone());
    blocking(move || app.kept.look(&id, None, |run, _| Ok(answer.repeats(run)))).await
}

/// `POST /v1/runs/{id}/cancel`.
pub(crate) fn cancel(app: Arc<App>, call: Call) -> Later {
    Box::pin(async move {
        let id = found(&app, &call).await?;
        if let Given::Alone(run) = app.host.cancel(&id).await?
            && run.run.state.ended().is_none()
        {
            let mut begun = run.cancel()?;
            let driven = begun.drive(&mut Controls::default()).await;
            begun.close().await;
            driven.map_err(selvedge_host::Error::from)?;
        }
        shown(app, id).await
    })
}

/// `POST /v1/runs/{id}/resume`.
pub(crate) fn resume(app: Arc<App>, call: Call) -> Later {
    Box::pin(async move {
        let resumed: Resumed = call.json(&app.limits).await?;
        let over = resumed.options.0.options()?;
        let id = found(&app, &call).await?;
        app.drives.room()?;
        let locked = {
            let (host, id) = (app.host.clone(), id.clone());
            blocking(move || Ok(host.lock(&id)?)).await?
        };
        app.drives.go_on(locked, &over).await?;
        shown(app, id).await
    })
}

async fn found(app: &Arc<App>, call: &Call) -> Result<String, Problem> {
    let (app, id) = (Arc::clone(app), call.part("id").to_owned());
    blocking(move || Ok(selvedge_host::stores::find_run(&app.store, &id)?)).await
}

/// The run as it is now.
async fn shown(app: Arc<App>, id: String) -> Result<Reply, Problem> {
    blocking(move || Ok(Reply::json(look::runs::object(&app, &id, None)?))).await
}
