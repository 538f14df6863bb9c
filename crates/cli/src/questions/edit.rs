//! A value that a person changes in an editor.

use super::{Questions, Word};
use crate::asks;
use selvedge_engine::{Asking, State};
use selvedge_host::text::one_line;
use serde_json::Value;
use std::process::Stdio;
use tempfile::TempPath;
use tokio::process::Command;

impl Questions<'_> {
    pub(super) async fn edit(&mut self, state: &State, ask: &Asking) -> Word {
        let shown = ask.value.as_deref().unwrap_or(&Value::Null);
        self.head("edit", &asks::prompt(state, ask));
        self.value(shown, false);
        if let Some(takes) = asks::takes(state, ask) {
            self.told(&takes);
        }
        let editor = self.editor();
        let prompt = format!(
            "  e to edit it in {}, y to take it as it is, @FILE, show, or Enter to leave it open: ",
            one_line(&editor, 40)
        );
        // What was edited and does not fit is edited further.
        let mut draft = None;
        loop {
            let Some(line) = self.line(&prompt).await else { return Word::Gone };
            let said = match line.trim() {
                "" => return Word::Later,
                "s" | "show" => {
                    self.value(shown, true);
                    continue;
                }
                "y" | "yes" => Ok(shown.clone()),
                "e" | "edit" => self.edited(&editor, shown, &mut draft).await,
                file if file.starts_with('@') => asks::read_text(file).and_then(|text| changed(shown, text)),
                word => Err(format!("{:?} is none of them", one_line(word, 40))),
            };
            match said.and_then(|value| self.fitting(state, ask, value)) {
                Ok(value) => return Word::Answer(value),
                Err(why) => self.told(&why),
            }
        }
    }

    fn editor(&self) -> String {
        let named = ["VISUAL", "EDITOR"].into_iter().find_map(|name| self.ui.environment.variable(name));
        named.unwrap_or_else(|| "vi".to_owned())
    }

    /// What a value is once the editor has ended.
    async fn edited(
        &self,
        editor: &str,
        value: &Value,
        draft: &mut Option<TempPath>,
    ) -> Result<Value, String> {
        let file = match draft {
            Some(file) => file,
            None => {
                draft.insert(written(value).map_err(|error| format!("there is no file to edit: {error}"))?)
            }
        };
        let mut command = Command::new("sh");
        // As a shell reads it: an editor may have arguments. Ctrl-C is the editor's, and ends neither the shell nor the run.
        command.arg("-c").arg(format!("trap : INT\n{editor} \"$@\"")).arg("sh").arg(&*file);
        let _editing = self.signals.editing();
        // The result may go to a file; the terminal is where the question stands.
        #[cfg(unix)]
        if let Ok(terminal) = std::os::fd::AsFd::as_fd(&std::io::stderr()).try_clone_to_owned() {
            command.stdout(Stdio::from(terminal));
        }
        // Should somebody answer elsewhere meanwhile, it ends.
        let status = command.kill_on_drop(true).status().await;
        match status {
            Ok(status) if status.success() => {}
            Ok(status) => {
                return Err(format!("{} ended with {status}: nothing was taken", one_line(editor, 80)));
            }
            Err(error) => return Err(format!("{} can't be started: {error}", one_line(editor, 80))),
        }
        let text =
            std::fs::read_to_string(&*file).map_err(|error| format!("the file can't be read: {error}"))?;
        // Who leaves an editor without saving has not agreed to anything.
        if text == crate::output::plain(value) {
            return Err("nothing was changed: y takes it as it is".to_owned());
        }
        changed(value, text)
    }
}

/// The value in a file of its own: a text as it is, anything else as indented JSON.
fn written(value: &Value) -> std::io::Result<TempPath> {
    let suffix = if value.is_string() { ".txt" } else { ".json" };
    let file = tempfile::Builder::new().prefix("selvedge-").suffix(suffix).tempfile()?;
    std::fs::write(file.path(), crate::output::plain(value))?;
    Ok(file.into_temp_path())
}

/// The changed form of a value: a text stays one, and anything else is read as JSON.
fn changed(value: &Value, mut text: String) -> Result<Value, String> {
    let Value::String(before) = value else {
        return asks::strict(&text).map_err(|why| format!("the changed value has to be JSON: {why}"));
    };
    // Editors end the last line.
    if !before.ends_with('\n') && text.ends_with('\n') {
        text.pop();
    }
    Ok(Value::String(text))
}
