//! Folders and files outside the document: state, caches, configuration (C-01, C-06, C-14).

use crate::environment::{absolute, path};
use crate::failure::Failure;
use crate::hints;
use std::path::{Path, PathBuf};

/// The state folder's name when it is found upwards.
const STATE: &str = ".selvedge";
/// The project's configuration file.
const CONFIG: &str = "selvedge.toml";

/// The state folder: the option, the variable, `.selvedge/` found upwards, the user's data folder (C-01). It need
/// not be there yet, but nothing else may be in its place.
///
/// # Errors
/// Exit 4 if there is no such place, or something that is no folder (C-14).
pub(crate) fn state_dir(option: Option<&Path>) -> Result<PathBuf, Failure> {
    let dir = state_place(option)?;
    match dir.ancestors().find(|part| part.exists()).filter(|part| !part.is_dir()) {
        None => Ok(dir),
        Some(file) => {
            let what = if file == dir { String::new() } else { format!("{}: ", dir.display()) };
            let message = format!("{what}{} is no folder, so no runs can be kept there", file.display());
            Err(Failure::environment("C-14", "state-no-folder", &message)
                .help("choose a folder with --state-dir DIR"))
        }
    }
}

fn state_place(option: Option<&Path>) -> Result<PathBuf, Failure> {
    if let Some(given) = option.map(Path::to_owned).or_else(|| path("SELVEDGE_STATE_DIR")) {
        return Ok(absolute(&given));
    }
    let cwd = absolute(Path::new("."));
    if let Some(found) = found_state(&cwd) {
        return Ok(found);
    }
    user_state().ok_or_else(|| {
        Failure::environment(
            "C-14",
            "no-state-folder",
            "there is no home folder to keep runs in (HOME is not set)",
        )
        .help("choose a folder with --state-dir DIR")
    })
}

/// The state folder that is found from a folder upwards.
pub(crate) fn found_state(from: &Path) -> Option<PathBuf> {
    from.ancestors().map(|folder| folder.join(STATE)).find(|folder| folder.is_dir())
}

/// Whether a state folder has the name under which it is found.
pub(crate) fn has_found_name(dir: &Path) -> bool {
    dir.file_name().is_some_and(|name| name == STATE)
}

/// Whether a state folder is one that is found upwards, and nobody named it: it may have come with a stranger's folder (C-20).
pub(crate) fn is_found(dir: &Path) -> bool {
    let named = path("SELVEDGE_STATE_DIR").map(|named| absolute(&named));
    has_found_name(dir) && named.is_none_or(|named| named != dir) && !hints::is_named(dir)
}

/// The folder of tools' environments, shared by all state folders of a user.
pub(crate) fn shared_cache(state: &Path) -> PathBuf {
    path("SELVEDGE_CACHE_DIR")
        .map(|folder| absolute(&folder))
        .or_else(|| user_folder("XDG_CACHE_HOME", ".cache").map(|cache| cache.join("selvedge")))
        .unwrap_or_else(|| state.join("cache"))
}

/// The configuration files that exist, weakest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Files {
    /// The user's own.
    pub(crate) user: Option<PathBuf>,
    /// `selvedge.toml`, which may be a stranger's (C-20).
    pub(crate) project: Option<PathBuf>,
}

impl Files {
    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = &PathBuf> {
        self.user.iter().chain(&self.project)
    }
}

/// The configuration files: the user's, then `selvedge.toml` found upwards from `cwd`.
pub(crate) fn config_files(cwd: &Path) -> Files {
    let user = match path("SELVEDGE_CONFIG") {
        // A file that is named must be there, so it is read whether it exists or not.
        Some(named) => Some(absolute(&named)),
        None => user_config().filter(|file| file.is_file()),
    };
    let project = cwd.ancestors().map(|folder| folder.join(CONFIG)).find(|file| file.is_file());
    let same = |file: &PathBuf| {
        user.as_ref().is_some_and(|user| user == file || user.canonicalize().ok() == file.canonicalize().ok())
    };
    let project = project.filter(|file| !same(file));
    Files { user, project }
}

/// The user's own state folder.
pub(crate) fn user_state() -> Option<PathBuf> {
    user_folder("XDG_DATA_HOME", ".local/share").map(|data| data.join("selvedge"))
}

/// The user's own configuration, where no variable names another.
pub(crate) fn user_config() -> Option<PathBuf> {
    user_folder("XDG_CONFIG_HOME", ".config").map(|folder| folder.join("selvedge/config.toml"))
}

/// Where it is kept which folders a person trusts (C-20): with the user, and in no project.
pub(crate) fn trust_dir() -> Option<PathBuf> {
    user_folder("XDG_DATA_HOME", ".local/share").map(|data| data.join("selvedge/trust"))
}

/// Where calls of tools are noted while they run: with the user, as no tool can write there, and nobody else either.
#[cfg(target_os = "linux")]
pub(crate) fn open_calls() -> Option<PathBuf> {
    user_state().map(|data| data.join("open-calls"))
}

/// A folder of the user by its XDG variable, else below HOME.
fn user_folder(variable: &str, below: &str) -> Option<PathBuf> {
    // The XDG specification says to ignore relative paths.
    let set = std::env::var_os(variable).map(PathBuf::from).filter(|folder| folder.is_absolute());
    set.or_else(|| Some(PathBuf::from(std::env::var_os("HOME").filter(|home| !home.is_empty())?).join(below)))
}
