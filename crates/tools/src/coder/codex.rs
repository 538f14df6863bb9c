//! The codex CLI as a coder: a program of the user's that works in a scratch folder of its own, in its own sandbox, and leaves one
//! file there.

mod events;
mod left;
mod settings;

use events::Said;
use selvedge_engine::{Failure, FaultKind, Operated};
use selvedge_http::{PROXY_VARIABLES, Secret, Secrets};
use selvedge_sandbox::env::ProcessEnv;
use selvedge_sandbox::process::{End, Finished, Launch, Scratch, Stragglers, Watch, run};
use serde_json::json;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How long it may work on a tool.
pub const CODEX_TIME: Duration = Duration::from_secs(1200);
/// Where its model is, unless something else is configured.
pub const CODEX_ADDRESS: &str = "https://api.openai.com/v1";
/// The variable that holds its key, unless another one is configured.
pub const CODEX_KEY: &str = "OPENAI_API_KEY";
/// The most of its events that are read.
const EVENTS: u64 = 64 << 20;
/// The most of its words that are handed on, in bytes.
const WORDS: usize = 4000;
/// The most of a line for who watches, in characters.
const LINE: usize = 200;
/// What it is told besides what is asked for.
const HANDING_IN: &str = include_str!("codex.md");
/// Variables about certificates, beside those about proxies.
const CERTIFICATES: [&str; 2] = ["SSL_CERT_FILE", "SSL_CERT_DIR"];

/// The codex CLI as it is used here.
#[derive(Clone, Debug)]
pub struct Codex {
    /// The program.
    pub program: PathBuf,
    /// The variable that it is given its key in, and the key: the only one that it is given.
    pub key: (String, Secret),
    /// The address of its model, which speaks the Responses API.
    pub base_url: String,
    /// The name of its model there; `None`: codex's own choice.
    pub model: Option<String>,
    /// How long it may work.
    pub timeout: Duration,
    /// The environment of this process: where programs and proxies are.
    pub env: ProcessEnv,
    /// Where its scratch folders are made.
    pub scratch_root: PathBuf,
}

/// The folders of one call.
struct Folders {
    home: PathBuf,
    temporary: PathBuf,
    work: PathBuf,
}

impl Codex {
    /// Where the program is that is configured, or is called `codex` on the search path.
    pub fn find(configured: Option<&Path>, env: &ProcessEnv) -> Option<PathBuf> {
        let name = configured.unwrap_or(Path::new("codex"));
        if name.components().count() > 1 {
            return name.is_file().then(|| name.to_owned());
        }
        env.search_path().map(|folder| folder.join(name)).find(|path| path.is_file())
    }

    /// Has it write the tool of that safe name. What it leaves is `{"file": text | null, "words": text}`: without a file the
    /// words say why, and an exit code says nothing. The tokens that it used are part of it. Who watches is told what it says and runs
    /// meanwhile. Dropping the future ends it with all that it started.
    ///
    /// # Errors
    /// It can't be started.
    pub async fn write(&self, name: &str, prompt: &str, watch: Option<Watch>) -> Result<Operated, Failure> {
        let failed = |what: &str, error: std::io::Error| {
            let message = format!("{what}: {error}");
            Failure::permanent(FaultKind::ToolBuildFailure, message).unsent()
        };
        let scratch = Scratch::new(self.scratch_root.clone())
            .await
            .map_err(|error| failed("codex has no folder to work in", error))?;
        // codex puts what it runs into groups and sandboxes of its own, which the end of its group does not always end.
        let _stragglers = Stragglers::of(scratch.path());
        let folders =
            self.prepared(scratch.path()).map_err(|error| failed("codex has no folder to work in", error))?;
        let launch = Launch {
            stdin: format!("{prompt}{}", HANDING_IN.replace("{name}", name)).into_bytes(),
            timeout: self.timeout,
            output_bytes: EVENTS,
            bound: true,
            watch: watch.map(|watch| self.telling(watch)),
            ..Launch::own(
                self.program.clone(),
                arguments(&folders),
                self.variables(&folders),
                folders.work.clone(),
            )
        };
        let what = || format!("{} can't be started", self.program.display());
        let finished = run(launch).await.map_err(|error| failed(&what(), error))?;
        let said = Said::read(&finished.stdout);
        let (file, about) = match left::file(&folders.work, name).await {
            Ok(text) if self.secrets().find(&text).is_some() => {
                (None, format!("the file `{name}.py` has the key of codex in it"))
            }
            Ok(text) => (Some(text), String::new()),
            Err(why) => (None, format!("{why}; {}", self.ended(&finished))),
        };
        let words = match (about.is_empty(), said.words.is_empty()) {
            (_, true) => about,
            (true, false) => said.words,
            (false, false) => format!("{about}; its last words: {}", said.words),
        };
        let words = short(&self.secrets().redact(&words));
        Ok(Operated {
            tokens: said.tokens,
            unread: said.unread,
            ..json!({"file": file, "words": words}).into()
        })
    }

    /// Tells who watches of its events, as lines.
    fn telling(&self, watch: Watch) -> Watch {
        let secrets = self.secrets();
        Arc::new(move |line: &str| {
            if let Some(told) = Said::progress(line) {
                let line: String = told.lines().next().unwrap_or_default().chars().take(LINE).collect();
                watch(&secrets.redact(&line));
            }
        })
    }

    fn secrets(&self) -> Secrets {
        Secrets::new([&self.key.1])
    }

    /// The folders of a call: its own home with our settings, so that nothing of the user's takes part.
    fn prepared(&self, scratch: &Path) -> std::io::Result<Folders> {
        // codex takes no home below the folder for temporary files: that is one beside it.
        let [home, temporary, work] = ["home", "tmp", "work"].map(|name| scratch.join(name));
        for folder in [&home, &temporary, &work] {
            std::fs::create_dir(folder)?;
        }
        std::fs::write(home.join("config.toml"), settings::text(self, &work))?;
        Ok(Folders { home, temporary, work })
    }

    /// Its environment: nothing of the user's but where programs, proxies and certificates are, and the one key.
    fn variables(&self, folders: &Folders) -> Vec<(OsString, OsString)> {
        let kept = PROXY_VARIABLES.iter().chain(&CERTIFICATES).chain(&["PATH"]);
        let kept = kept.filter_map(|name| Some((OsString::from(name), self.env.variable(name)?.to_owned())));
        let own = [
            ("HOME", folders.home.as_os_str()),
            ("CODEX_HOME", folders.home.as_os_str()),
            ("TMPDIR", folders.temporary.as_os_str()),
            ("LANG", "C.UTF-8".as_ref()),
            (self.key.0.as_str(), self.key.1.expose().as_ref()),
        ];
        kept.chain(own.map(|(name, value)| (name.into(), value.to_owned()))).collect()
    }

    /// How it ended, in words.
    fn ended(&self, finished: &Finished) -> String {
        let how = match finished.end {
            End::TimedOut => return format!("codex was ended after {} s", self.timeout.as_secs_f64()),
            End::TooMuchOutput => return "codex said too much, and was ended".to_owned(),
            End::Exited(0) => return "codex says that it has done its work".to_owned(),
            End::Exited(code) => format!("codex ended with exit code {code}"),
            _ => "codex was ended from outside".to_owned(),
        };
        match finished.stderr_end(500) {
            said if said.is_empty() => how,
            said => format!("{how}: {said}"),
        }
    }
}

fn arguments(folders: &Folders) -> Vec<OsString> {
    let mut args: Vec<OsString> =
        ["exec", "--json", "--skip-git-repo-check", "--ephemeral", "-C"].map(Into::into).into();
    // The prompt comes on stdin, where it may have any length.
    args.extend([folders.work.clone().into(), "-".into()]);
    args
}

/// The beginning and the end of words that are too long.
fn short(words: &str) -> String {
    if words.len() <= WORDS {
        return words.to_owned();
    }
    let begin = words.get(..words.floor_char_boundary(WORDS / 2)).unwrap_or_default();
    let end =
        words.get(words.ceil_char_boundary(words.len().saturating_sub(WORDS / 2))..).unwrap_or_default();
    format!("{begin} […] {end}")
}
