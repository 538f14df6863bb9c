//! What was allowed, held against what tools declare.

use super::{Declared, Permissions};
use crate::diag::ToolError;
use crate::variables::Variables;
use selvedge_http::Secret;
use selvedge_sandbox::grant::{Grant, PROGRAMS, Resolver, is_system};
use std::path::{Path, PathBuf};

/// What is granted to the tools of a catalogue. Names are resolved once, when it is made: a link that a tool leaves in the
/// place of a granted folder leads nobody further.
#[derive(Clone, Debug)]
pub(crate) struct Granted {
    pub(super) workspace: PathBuf,
    /// The document's folder first.
    pub(super) read: Vec<Grant>,
    pub(super) write: Vec<Grant>,
    pub(super) network: bool,
    pub(super) env: Variables,
}

/// What one tool may reach of the file system, and the variables that it is given.
#[derive(Clone, Debug, Default)]
pub(crate) struct Access {
    pub(crate) read: Vec<Grant>,
    pub(crate) write: Vec<Grant>,
    pub(crate) env: Vec<(String, Secret)>,
}

/// What a tool declares and nobody allowed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Lack {
    /// As it is declared: "`network: true`".
    pub(crate) declared: String,
    /// What would allow it: "`--allow-network`".
    option: String,
    /// Whether it begins with `~`, which is a folder of that name.
    home: bool,
}

impl Granted {
    /// What is granted to tools of documents in `workspace`.
    pub(crate) fn new(permissions: &Permissions, workspace: &Path, resolver: &mut Resolver) -> Self {
        let folder = resolver
            .grant(workspace)
            .unwrap_or_else(|| Grant { name: workspace.to_owned(), real: workspace.to_owned() });
        let mut read = vec![folder];
        read.extend(places(&permissions.allow_read, workspace, resolver));
        let write = places(&permissions.allow_write, workspace, resolver);
        let (network, env) = (permissions.allow_network.is_on(), permissions.allow_env.clone());
        Self { workspace: workspace.to_owned(), read, write, network, env }
    }

    /// All of it: what built-ins that run code may reach.
    pub(crate) fn all(&self) -> Access {
        Access { write: self.write.clone(), ..self.base() }
    }

    /// Checks a declaration before anything runs, and says what the tool may reach.
    ///
    /// # Errors
    /// One error (`Document`) that names the tool, what it declares and the options that allow it; or one (`Environment`) that names
    /// variables which are allowed and not set.
    pub(crate) fn check(&self, tool: &str, declared: &Declared) -> Result<Access, ToolError> {
        let (mut access, lacks) = self.weigh(tool, declared)?;
        if lacks.is_empty() {
            access.env = self.env.all(tool, &declared.env)?;
            return Ok(access);
        }
        let expanded = if lacks.iter().any(|lack| lack.home) {
            "; `~` is not expanded in a declaration: write the path in full there, which takes the same path here"
        } else {
            ""
        };
        let (what, options): (Vec<_>, Vec<_>) =
            lacks.into_iter().map(|lack| (lack.declared, lack.option)).unzip();
        let message = format!("the tool `{tool}` declares {}, which is not allowed here", what.join(" and "));
        Err(ToolError::document("A-20", message)
            .help(format!("allow it with {}, or in `[tools]` of selvedge.toml{expanded}", options.join(" "))))
    }

    /// What of a declaration is not allowed.
    ///
    /// # Errors
    /// What nobody can allow, and variables that are allowed and not set.
    pub(crate) fn lacks(&self, tool: &str, declared: &Declared) -> Result<Vec<Lack>, ToolError> {
        let (_, lacks) = self.weigh(tool, declared)?;
        if lacks.is_empty() {
            self.env.all(tool, &declared.env)?;
        }
        Ok(lacks)
    }

    /// What of a declaration is allowed of the file system, and what is not allowed of all of it.
    fn weigh(&self, tool: &str, declared: &Declared) -> Result<(Access, Vec<Lack>), ToolError> {
        let mut lacks = Vec::new();
        let lack = |declared, option| Lack { declared, option, home: false };
        if declared.network && !self.network {
            lacks.push(lack("`network: true`".to_owned(), "`--allow-network`".to_owned()));
        }
        let mut access = self.base();
        let kinds = [
            ("read_paths", "--allow-read", &declared.read_paths, &self.read, &mut access.read),
            ("write_paths", "--allow-write", &declared.write_paths, &self.write, &mut access.write),
        ];
        for (key, option, paths, roots, granted) in kinds {
            for path in paths {
                let place = Grant::of(self.workspace.join(path));
                let home = path.starts_with("~");
                // An option of the command line starts elsewhere than a declaration: it is shown in full.
                let full = if home { PathBuf::from("PATH") } else { self.workspace.join(path) };
                match place {
                    Some(place) if is_system(&place.real) => return Err(whole_system(tool, key, path)),
                    Some(place) if is_within(roots, &place.real) => granted.push(place),
                    // Each tool reads that anyway.
                    Some(place) if key == "read_paths" && is_programs(&place.real) => {}
                    _ => {
                        let declared = format!("`{key}: [\"{}\"]`", path.display());
                        lacks.push(Lack { home, ..lack(declared, format!("`{option} {}`", full.display())) });
                    }
                }
            }
        }
        let names = declared.env.iter().filter(|name| !self.env.has(name));
        lacks.extend(names.map(|name| lack(format!("`env: [\"{name}\"]`"), format!("`--allow-env {name}`"))));
        Ok((access, lacks))
    }

    /// What of a declaration is allowed: for a file that is only looked at.
    pub(crate) fn allowed(&self, declared: &Declared) -> Access {
        let mut access = self.base();
        let kinds = [
            (&declared.read_paths, &self.read, &mut access.read),
            (&declared.write_paths, &self.write, &mut access.write),
        ];
        for (paths, roots, granted) in kinds {
            let all = places(paths, &self.workspace, &mut Resolver::default()).into_iter();
            granted.extend(all.filter(|p| !is_system(&p.real) && is_within(roots, &p.real)));
        }
        access.env = self.env.given(&declared.env);
        access
    }

    /// Whether tools that declare it may use the network.
    pub(crate) fn network(&self) -> bool {
        self.network
    }

    /// What every tool may reach: nothing is written unless it is declared.
    fn base(&self) -> Access {
        Access { read: self.read.clone(), ..Access::default() }
    }
}

/// The places that these paths mean now.
fn places(paths: &[PathBuf], workspace: &Path, resolver: &mut Resolver) -> Vec<Grant> {
    paths.iter().filter_map(|path| resolver.grant(workspace.join(path))).collect()
}

fn is_within(roots: &[Grant], real: &Path) -> bool {
    roots.iter().any(|root| real.starts_with(&root.real))
}

/// Whether a place belongs to the system's programs and libraries, which every tool reads.
fn is_programs(real: &Path) -> bool {
    PROGRAMS.iter().any(|own| real.starts_with(own))
}

fn whole_system(tool: &str, key: &str, path: &Path) -> ToolError {
    let message = format!(
        "the tool `{tool}` declares `{key}: [\"{}\"]`, which is the system itself: nobody can allow that",
        path.display()
    );
    let does = if key == "read_paths" { "reads" } else { "writes" };
    ToolError::document("A-20", message).help(format!("declare the folders that it {does}"))
}
