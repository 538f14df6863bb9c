//! What is found about a document that is not run (C-04).

use crate::act::bodies::Checked;
use crate::app::App;
use crate::call::Call;
use crate::problem::Problem;
use crate::reply::{Later, Reply};
use selvedge_dialects::diagnostic::check_json;
use selvedge_host::options::RunOptions;
use std::path::PathBuf;
use std::sync::Arc;

/// `POST /v1/check`.
pub(crate) fn check(app: Arc<App>, call: Call) -> Later {
    Box::pin(async move {
        let (checked, document): (Checked, _) = call.with_document(&app.limits).await?;
        let mut options = RunOptions { plan: checked.plan, dialect: checked.dialect, ..app.defaults.clone() };
        let file = match (document, checked.name) {
            (Some(document), None) => {
                options.given = Some(document);
                PathBuf::from("document.json")
            }
            (None, Some(name)) => app.documents()?.file(&name)?,
            _ => return Err(Problem::bad("bad-body", "one of `document` and `name` is looked at")),
        };
        let found = app.host.check(options)?.document(&file).await?;
        Ok(Reply::json(check_json(&found.findings)))
    })
}
