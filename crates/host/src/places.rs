//! Folders and files outside the document: state, caches, configuration (C-01, C-06, C-14).

use crate::environment::Environment;
use crate::error::Error;
use std::path::{Path, PathBuf};

/// The state folder's name when it is found upwards.
const STATE: &str = ".selvedge";
/// The project's configuration file.
const CONFIG: &str = "selvedge.toml";

/// The state folder: the option, the variable, `.selvedge/` found upwards, the user's data folder (C-01). It need
/// not be there yet, but nothing else may be in its place.
///
/// # Errors
/// `Environment` if there is no such place, or something that is no folder (C-14).
pub fn state_dir(environment: &Environment, option: Option<&Path>) -> Result<PathBuf, Error> {
    let dir = state_place(environment, option)?;
    match dir.ancestors().find(|part| part.exists()).filter(|part| !part.is_dir()) {
        None => Ok(dir),
        Some(file) => {
            let what = if file == dir { String::new() } else { format!("{}: ", dir.display()) };
            let message = format!("{what}{} is no folder, so no runs can be kept there", file.display());
            Err(Error::environment("C-14", "state-no-folder", &message)
                .help("choose a folder with --state-dir DIR"))
        }
    }
}

fn state_place(environment: &Environment, option: Option<&Path>) -> Result<PathBuf, Error> {
    if let Some(given) = option.map(Path::to_owned).or_else(|| environment.path("SELVEDGE_STATE_DIR")) {
        return Ok(environment.absolute(&given));
    }
    if let Some(found) = found_state(environment.cwd()) {
        return Ok(found);
    }
    user_state(environment).ok_or_else(|| {
        Error::environment(
            "C-14",
            "no-state-folder",
            "there is no home folder to keep runs in (HOME is not set)",
        )
        .help("choose a folder with --state-dir DIR")
    })
}

/// The state folder that is found from a folder upwards.
pub fn found_state(from: &Path) -> Option<PathBuf> {
    from.ancestors().map(|folder| folder.join(STATE)).find(|folder| folder.is_dir())
}

/// Whether a state folder has the name under which it is found.
pub fn has_found_name(dir: &Path) -> bool {
    dir.file_name().is_some_and(|name| name == STATE)
}

/// Whether a state folder is one that is found upwards, and nobody named it: it may have come with a stranger's folder (C-20).
pub fn is_found(environment: &Environment, dir: &Path) -> bool {
    has_found_name(dir) && !environment.is_named(dir)
}

/// The folder of tools' environments, shared by all state folders of a user.
pub fn shared_cache(environment: &Environment, state: &Path) -> PathBuf {
    environment
        .path("SELVEDGE_CACHE_DIR")
        .map(|folder| environment.absolute(&folder))
        .or_else(|| user_folder(environment, "XDG_CACHE_HOME", ".cache").map(|cache| cache.join("selvedge")))
        .unwrap_or_else(|| state.join("cache"))
}

/// The configuration files that exist, weakest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// The user's own.
    pub user: Option<PathBuf>,
    /// `selvedge.toml`, which may be a stranger's (C-20).
    pub project: Option<PathBuf>,
}

impl Files {
    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &PathBuf> {
        self.user.iter().chain(&self.project)
    }
}

/// The configuration files: the user's, then `selvedge.toml` found upwards from `cwd`.
pub fn config_files(environment: &Environment, cwd: &Path) -> Files {
    let user = match environment.path("SELVEDGE_CONFIG") {
        // A file that is named must be there, so it is read whether it exists or not.
        Some(named) => Some(environment.absolute(&named)),
        None => user_config(environment).filter(|file| file.is_file()),
    };
    let project = cwd.ancestors().map(|folder| folder.join(CONFIG)).find(|file| file.is_file());
    let same = |file: &PathBuf| {
        user.as_ref().is_some_and(|user| user == file || user.canonicalize().ok() == file.canonicalize().ok())
    };
    let project = project.filter(|file| !same(file));
    Files { user, project }
}

/// The user's own state folder.
pub fn user_state(environment: &Environment) -> Option<PathBuf> {
    user_folder(environment, "XDG_DATA_HOME", ".local/share").map(|data| data.join("selvedge"))
}

/// The user's own configuration, where no variable names another.
pub fn user_config(environment: &Environment) -> Option<PathBuf> {
    user_folder(environment, "XDG_CONFIG_HOME", ".config").map(|folder| folder.join("selvedge/config.toml"))
}

/// Where it is kept which folders a person trusts (C-20): with the user, and in no project.
pub fn trust_dir(environment: &Environment) -> Option<PathBuf> {
    user_folder(environment, "XDG_DATA_HOME", ".local/share").map(|data| data.join("selvedge/trust"))
}

/// Where calls of tools are noted while they run: with the user, as no tool can write there, and nobody else either.
#[cfg(target_os = "linux")]
pub fn open_calls(environment: &Environment) -> Option<PathBuf> {
    user_state(environment).map(|data| data.join("open-calls"))
}

/// A folder of the user by its XDG variable, else below HOME.
fn user_folder(environment: &Environment, variable: &str, below: &str) -> Option<PathBuf> {
    // The XDG specification says to ignore relative paths.
    let set = environment.path(variable).filter(|folder| folder.is_absolute());
    set.or_else(|| Some(environment.path("HOME")?.join(below)))
}

/// The document's folder, where relative paths of tools start.
pub fn workspace(environment: &Environment, document: &Path) -> PathBuf {
    let folder = document.parent().filter(|folder| !folder.as_os_str().is_empty());
    environment.absolute(folder.unwrap_or(Path::new(".")))
}
