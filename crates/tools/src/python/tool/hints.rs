//! What is said beside a tool's own words where the sandbox has refused something: what the tool declares, and what
//! would have to be declared and allowed. A tool sees the refusal only as the system words it.

use super::PythonTool;
use super::modules::missing_module;
use crate::python::context::PythonContext;
use crate::variables::unfit_variable;
use selvedge_engine::{Failure, FaultKind};
use selvedge_sandbox::configuration::guarded;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// What Python and its usual libraries say without a network.
const NO_NETWORK: [&str; 7] = [
    "gaierror",
    "socket.py\"",
    "socket.socket(",
    "Network is unreachable",
    "Name or service not known",
    "name resolution",
    "NameResolutionError",
];

impl PythonTool {
    /// The failure of a call, or of a file to load, with a hint, if it looks like a refusal of the sandbox.
    pub(super) fn hinted(&self, context: &PythonContext, source: &[u8], mut failed: Failure) -> Failure {
        if failed.fault.kind != FaultKind::ExecutionFailure {
            return failed;
        }
        let hint = self.hint(context, &failed).or_else(|| self.unset(source, &failed));
        let Some(hint) = hint else { return failed };
        failed.fault.message = format!("{} ({hint})", failed.fault.message);
        if let Some(error) = failed.fault.cause.as_mut().and_then(|cause| cause.get_mut("error")) {
            error["hint"] = hint.into();
        }
        failed
    }

    fn hint(&self, context: &PythonContext, failed: &Failure) -> Option<String> {
        let error = failed.fault.cause.as_ref()?.get("error")?;
        let text = |key: &str| error.get(key).and_then(Value::as_str).unwrap_or_default();
        let message = &failed.fault.message;
        if let Some(name) = error.get("variable").and_then(Value::as_str) {
            return Some(self.lacking(name));
        }
        if let Some(hint) = missing_module(message, &self.source)
            .filter(|_| message.contains("ImportError") || message.contains("ModuleNotFoundError"))
        {
            return Some(hint);
        }
        let says = |sign: &str| message.contains(sign) || text("traceback").contains(sign);
        if !self.declared(context).network && says("in socketpair") {
            return Some(
                "without the network a pair of sockets is one for streams or packets (SOCK_STREAM, SOCK_SEQPACKET): what is sent by \
                 one for datagrams can be sent to anybody"
                    .to_owned(),
            );
        }
        if !self.declared(context).network && says("multiprocessing/managers.py") {
            return Some(
                "a manager of `multiprocessing` listens on a socket, which takes the network: `\"network\": True` in \
                 __TOOL_META__, and `--allow-network`; its pipes, queues, pools and shared memory don't"
                    .to_owned(),
            );
        }
        // processes that start anew.
        if !self.declared(context).network && says("multiprocessing/forkserver.py") {
            return Some(
                "the start method `forkserver` of `multiprocessing` listens on a socket, which takes the network: \
                 `\"network\": True` in __TOOL_META__, and `--allow-network`; `spawn` and `fork` don't"
                    .to_owned(),
            );
        }
        if !self.declared(context).network && NO_NETWORK.iter().any(|sign| says(sign)) {
            return Some(match self.meta.network {
                true => "in a replay, no tool has the network".to_owned(),
                false => "the tool declares no network: it takes `\"network\": True` in __TOOL_META__, and \
                          `--allow-network`"
                    .to_owned(),
            });
        }
        let writes = match declared(&self.meta.write_paths) {
            None => "the tool declares no `write_paths`, so it writes its scratch folder only".to_owned(),
            Some(paths) => format!("the tool declares `write_paths: [{paths}]`"),
        };
        let read_only = message.contains("[Errno 30]") || message.contains("Read-only file system");
        if !read_only && !message.contains("[Errno 13]") {
            return None;
        }
        if let Some(place) = quoted(message).find_map(|path| guarded(Path::new(path))) {
            let name = place.file_name().unwrap_or_default().display();
            return Some(format!(
                "`{name}` is what Selvedge or other programs read and run unasked: it stays as it is unless it is granted by its \
                 own name, in `write_paths` and with `--allow-write`"
            ));
        }
        let wanted = "`write_paths` in __TOOL_META__, and `--allow-write PATH`";
        if read_only {
            return Some(format!("{writes}: to write elsewhere takes {wanted}"));
        }
        let reads = match declared(&self.meta.read_paths) {
            None => "no `read_paths`".to_owned(),
            Some(paths) => format!("`read_paths: [{paths}]`"),
        };
        Some(format!(
            "{writes}, and {reads}: to write elsewhere takes {wanted}; to read, `read_paths`, and \
              `--allow-read PATH` outside of the document's folder"
        ))
    }
}

impl PythonTool {
    /// What is said where a tool has looked for a variable that it does not declare, and was given nothing (`os.getenv`): only
    /// if the failure looks as if it came of that, as a tool may do well without.
    fn unset(&self, source: &[u8], failed: &Failure) -> Option<String> {
        let message = &failed.fault.message;
        let error = failed.fault.cause.as_ref()?.get("error")?;
        let traceback = error.get("traceback").and_then(Value::as_str).unwrap_or_default();
        let refused =
            ["NoneType", "None", "401", "403", "nauthorized"].iter().any(|sign| message.contains(sign));
        let told = |name: &&str| message.contains(*name) || traceback.contains(*name);
        let source = String::from_utf8_lossy(source);
        let sought = sought(&source).into_iter().filter(|name| unfit_variable(name).is_none());
        let mut undeclared = sought.filter(|name| !self.meta.env.iter().any(|declared| declared == name));
        let name = undeclared.find(|name| refused || told(name))?;
        Some(self.lacking(name))
    }

    /// What a tool would have to say for a variable that it has looked for in vain.
    fn lacking(&self, name: &str) -> String {
        if let Some(why) = unfit_variable(name) {
            return format!("tools are given the variables that they declare, and this {why}");
        }
        let allow = format!("`--allow-env {name}`, or `allow_env` in `[tools]` of selvedge.toml");
        match self.meta.env.iter().any(|declared| declared == name) {
            true => format!(
                "the tool declares `{name}` in `env`, and it is not allowed here, or not set: {allow}"
            ),
            false => format!(
                "the tool declares no variable `{name}`, and is given none but those that it declares: it takes \
                 `\"env\": [\"{name}\"]` in __TOOL_META__, and {allow}"
            ),
        }
    }
}

/// Names of variables that a source asks for without saying what else it takes.
fn sought(source: &str) -> Vec<&str> {
    let calls = ["getenv(", "environ.get("];
    let behind = calls.iter().flat_map(|call| source.match_indices(call).map(|(at, _)| at + call.len()));
    let name = |at: usize| {
        let argument = source.get(at..)?.trim_start();
        let quote = argument.chars().next().filter(|sign| matches!(sign, '"' | '\''))?;
        let (name, rest) = argument.get(1..)?.split_once(quote)?;
        rest.trim_start().starts_with(')').then_some(name)
    };
    behind.filter_map(name).collect()
}

/// What stands between quotes: paths, in the words of Python.
fn quoted(message: &str) -> impl Iterator<Item = &str> {
    message.split('\'').skip(1).step_by(2)
}

/// Paths as metadata has them; `None` for none.
fn declared(paths: &[PathBuf]) -> Option<String> {
    let shown: Vec<_> = paths.iter().map(|path| format!("{:?}", path.display().to_string())).collect();
    (!shown.is_empty()).then(|| shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_sought_without_another_value() {
        let source = "a = os.getenv('A_KEY')\nb = os.environ.get( \"B\" )\nos.getenv('C', '')\nos.getenv(name)\ngetenv('open";
        assert_eq!(sought(source), ["A_KEY", "B"]);
    }
}
