//! What Selvedge and other programs read for themselves, and run, is not for tools to write: `selvedge.toml` says
//! which programs Selvedge starts for the user, outside of any sandbox, and the folders of tools are their code; a shell's
//! prompt and an editor run what `.git` and its kind name. A state folder and a cache hold what Selvedge believes: no tool
//! sees them. Where such a thing lies in what may be written, a sandbox shows it as it is. What is made under one of these
//! names is set aside when the call is over, before anybody is told that it is.

mod found;

pub use found::Found;
use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The name of a project's configuration.
const CONFIGURATION: &str = "selvedge.toml";
/// The name under which a state folder is found.
const STATE: &str = ".selvedge";
/// What other programs run unasked: version control on each prompt and in each editor, the shell on entering a folder, an
/// editor on opening one, the hooks of a commit.
const UNASKED: [&str; 6] = [".git", ".hg", ".jj", ".envrc", ".vscode", ".husky"];
/// The most that is read of a file which says where a repository lies.
const POINTER: u64 = 8 << 10;

/// Whether an entry of a folder has one of the names: of Selvedge's, or of what other programs run.
pub(crate) fn is_name(place: &Path) -> bool {
    place.file_name().is_some_and(|name| is_own(name) || UNASKED.iter().any(|other| name == *other))
}

/// Whether a name is one of Selvedge's.
pub fn is_own(name: &OsStr) -> bool {
    name == CONFIGURATION || name == STATE
}

/// The nearest place with one of the names that a path without links lies in, or is.
pub fn guarded(real: &Path) -> Option<&Path> {
    real.ancestors().find(|place| is_name(place))
}

/// The folder that git would take for a repository, whatever it is called, with a file at `real` in it, and in which that file
/// would say what git runs or make it one. None that was a repository already and that one of `granted` names.
pub fn repository_with(real: &Path, granted: &[PathBuf]) -> Option<PathBuf> {
    const PARTS: [&str; 9] = [
        "HEAD",
        "commondir",
        "objects",
        "refs",
        "config",
        "config.worktree",
        "hooks",
        "modules",
        "worktrees",
    ];
    let roots: Vec<&PathBuf> = granted.iter().filter(|root| real.starts_with(root)).collect();
    let mut found =
        real.ancestors().skip(1).take_while(|folder| roots.iter().any(|root| folder.starts_with(root)));
    let found = found.find(|folder| {
        let Some(part) = real.strip_prefix(folder).ok().and_then(|rest| rest.iter().next()) else {
            return false;
        };
        let is_one = |new: &OsStr| {
            let has = |name: &str| new == name || folder.join(name).symlink_metadata().is_ok();
            has("HEAD") && (has("commondir") || has("objects") && has("refs"))
        };
        let meant = || is_one(OsStr::new("")) && roots.iter().any(|root| root.starts_with(folder));
        PARTS.iter().any(|name| part == *name) && is_one(part) && !meant()
    });
    found.map(Path::to_owned)
}

/// The nearest state folder that a path without links lies in, or is.
pub fn state_of(real: &Path) -> Option<&Path> {
    real.ancestors().find(|place| place.file_name().is_some_and(|name| name == STATE))
}

/// Where the names are looked for first: in the folders granted for writing, and in those between them and what is `read` or
/// where this process is, `here`. One that was granted by its own name is the user's will.
pub(crate) fn places(granted: &[PathBuf], read: &[PathBuf], here: Option<&PathBuf>) -> Vec<PathBuf> {
    let starts: Vec<&PathBuf> = read.iter().chain(here).collect();
    let mut places = Vec::new();
    for root in granted.iter().filter(|root| !root.is_file()) {
        let below = starts.iter().filter(|path| path.starts_with(root) && path.is_dir());
        let between = below.flat_map(|path| path.ancestors().take_while(|folder| folder.starts_with(root)));
        let names = || [CONFIGURATION, STATE].into_iter().chain(UNASKED);
        for place in std::iter::once(root.as_path()).chain(between).flat_map(|f| names().map(|n| f.join(n))) {
            if !places.contains(&place) && !granted.contains(&place) {
                places.push(place);
            }
        }
    }
    places
}

/// Where the repository lies that a `.git` file leads to (`gitdir: …`, of worktrees and submodules), and the one that it
/// shares with others.
fn repositories(git: &Path) -> Vec<PathBuf> {
    let line = |file: &Path| {
        let mut text = String::new();
        std::fs::File::open(file).ok()?.take(POINTER).read_to_string(&mut text).ok()?;
        Some(text.trim_end_matches(['\n', '\r']).to_owned())
    };
    let around = |file: &Path| file.parent().map(Path::to_owned).unwrap_or_default();
    let mut all = Vec::new();
    let repository = match git.is_file() {
        true => line(git).and_then(|text| Some(around(git).join(text.strip_prefix("gitdir:")?.trim_start()))),
        false => Some(git.to_owned()),
    };
    if let Some(repository) = repository {
        let shared = line(&repository.join("commondir")).map(|text| repository.join(text));
        all.extend(shared);
        all.push(repository);
    }
    all
}
