//! What a tool sees of the file system: one list, from which both the mounts and Landlock's rules are made.

use crate::configuration;
use crate::exact;
use crate::grant::{Grant, OURS, PROGRAMS, is_ours, is_system};
use crate::isolation::confine::Files;
use crate::policy::Policy;
use std::collections::BTreeSet;
use std::io;
use std::path::{Component, Path, PathBuf};

/// What programs and libraries look up, without secrets in it.
const SETTINGS: &[&str] = &[
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/alternatives",
    "/etc/localtime",
    "/etc/timezone",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/pki/tls/certs",
    "/etc/pki/ca-trust",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/ca-certificates",
];
/// What the network needs besides.
const NETWORK: &[&str] =
    &["/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/gai.conf", "/etc/services", "/etc/protocols"];
/// Devices without a device behind them.
pub(crate) const DEVICES: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
];
/// Memory that processes of one call share by name.
pub(crate) const SHARED_MEMORY: &str = "/dev/shm";

/// How a place is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Seen {
    /// Its content can be read and executed.
    Read,
    /// Everything can be done there.
    Write,
    /// It is empty: what is below it is not for tools.
    Hidden,
}

/// One place: what lies at `source` outside is seen at `place` inside. Where these are not the same, `place` is another name,
/// and a link inside: what is kept or hidden at the source can't be reached around that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) source: PathBuf,
    pub(crate) place: PathBuf,
    pub(crate) seen: Seen,
}

/// Everything that a tool sees, outer folders before inner ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct View(pub(crate) Vec<Place>);

impl Place {
    /// Whether it is only another name of its source.
    pub(crate) fn is_alias(&self) -> bool {
        self.place != self.source
    }
}

impl View {
    /// The view of a policy and further writable folders; what is not there is left out.
    ///
    /// # Errors
    /// A granted path that has come to lead through a link since it was checked.
    pub(crate) fn new(policy: &Policy, writable: &[&Path]) -> io::Result<Self> {
        let mut view = Self::default();
        for path in SETTINGS.iter().chain(if policy.network { NETWORK } else { &[] }) {
            view.add(Path::new(path), Seen::Read)?;
        }
        let hidden: BTreeSet<PathBuf> =
            policy.hidden.iter().filter_map(|path| path.canonicalize().ok()).collect();
        let ours = |grant: &&Grant| hidden.iter().any(|state| is_ours(state, &grant.real));
        for grant in policy.read.iter().filter(|grant| !ours(grant)) {
            view.grant(grant, Seen::Read)?;
        }
        for path in &policy.runtime {
            view.add(path, Seen::Read)?;
        }
        for grant in policy.write.iter().filter(|grant| !ours(grant)) {
            view.grant(grant, Seen::Write)?;
        }
        for path in writable {
            view.add(path, Seen::Write)?;
        }
        view.write_inside(policy);
        let roots: Vec<PathBuf> = view.0.iter().map(|place| place.source.clone()).collect();
        for path in hidden {
            if roots.iter().any(|root| path.starts_with(root) && path != *root) {
                view.0.push(Place { source: path.clone(), place: path, seen: Seen::Hidden });
            } else if roots.contains(&path) {
                // The folder itself was granted: what is in it that is ours stays hidden.
                for path in OURS.map(|name| path.join(name)).into_iter().filter(|path| path.exists()) {
                    view.0.push(Place { source: path.clone(), place: path, seen: Seen::Hidden });
                }
            }
        }
        view.0.sort_by_key(|place| place.place.components().count());
        view.join();
        view.keep(policy, writable);
        Ok(view)
    }

    /// What nobody has to grant: it is where its name leads now.
    fn add(&mut self, path: &Path, seen: Seen) -> io::Result<()> {
        match path.canonicalize() {
            Ok(real) => self.grant(&Grant { name: path.to_owned(), real }, seen),
            Err(_) => Ok(()),
        }
    }

    fn grant(&mut self, grant: &Grant, seen: Seen) -> io::Result<()> {
        let source = &grant.real;
        // The system as a whole is no place to grant, and parts of it are made anew inside.
        if is_system(source) || !is_there(source)? {
            return Ok(());
        }
        self.put(Place { source: source.clone(), place: source.clone(), seen });
        // A path that goes through links is seen under its own name too.
        let plain = plain(&grant.name);
        if plain != *source && !is_system(&plain) && !PROGRAMS.iter().any(|own| plain.starts_with(own)) {
            self.put(Place { source: source.clone(), place: plain, seen });
        }
        Ok(())
    }

    /// What may be written as a part of something larger is not kept from it by a grant for reading. Only what the
    /// tool's program consists of stays as it is.
    fn write_inside(&mut self, policy: &Policy) {
        let real = |paths: &[PathBuf]| paths.iter().filter_map(|path| path.canonicalize().ok()).collect();
        let runtime: Vec<PathBuf> = real(&policy.runtime);
        let written = |path: &Path| policy.write.iter().any(|grant| path.starts_with(&grant.real));
        for place in self.0.iter_mut().filter(|place| place.seen == Seen::Read) {
            if written(&place.source) && !runtime.contains(&place.source) {
                place.seen = Seen::Write;
            }
        }
    }

    /// Leaves out what can be written as a part of what lies around it: a mount of its own would keep files from being
    /// moved in and out. Also other names that are seen, as links, as a part of what lies around them.
    fn join(&mut self) {
        let mut kept: Vec<Place> = Vec::with_capacity(self.0.len());
        for place in self.0.drain(..) {
            // Outer folders come before inner ones, so that the last of them is the nearest.
            let around = kept.iter().rfind(|outer| place.place.starts_with(&outer.place));
            let is_part = |outer: &Place| match place.is_alias() {
                true => true,
                false => place.seen == Seen::Write && outer.seen == Seen::Write && !outer.is_alias(),
            };
            if !around.is_some_and(is_part) {
                kept.push(place);
            }
        }
        self.0 = kept;
    }

    fn put(&mut self, new: Place) {
        match self.0.iter_mut().find(|other| other.place == new.place) {
            Some(other) if new.seen == Seen::Write => *other = new,
            Some(_) => {}
            None => self.0.push(new),
        }
    }

    /// What Selvedge reads for itself stays as it is, whatever may be written around it; what was granted in that may be
    /// written all the same. The folders between have places of their own: so they, and what is hidden, keep their names.
    fn keep(&mut self, policy: &Policy, writable: &[&Path]) {
        let around = |path: &Path, places: &[Place]| -> Vec<Place> {
            let outer = places
                .iter()
                .rfind(|p| p.seen != Seen::Hidden && path.starts_with(&p.place) && path != p.place);
            let Some(outer) = outer.filter(|p| p.seen == Seen::Write && !p.is_alias()) else {
                return Vec::new();
            };
            let between = path.ancestors().skip(1).take_while(|folder| *folder != outer.place);
            let pin =
                |folder: &Path| Place { source: folder.into(), place: folder.into(), seen: Seen::Write };
            between.map(pin).collect()
        };
        let kept: Vec<PathBuf> =
            policy.kept.iter().filter(|path| path.symlink_metadata().is_ok()).cloned().collect();
        let hidden: Vec<PathBuf> = self
            .0
            .iter()
            .filter(|place| place.seen == Seen::Hidden)
            .map(|place| place.place.clone())
            .collect();
        let pins: Vec<Place> = kept.iter().chain(&hidden).flat_map(|path| around(path, &self.0)).collect();
        let as_it_is =
            kept.iter().map(|path| Place { source: path.clone(), place: path.clone(), seen: Seen::Read });
        let own = writable.iter().filter_map(|path| path.canonicalize().ok());
        let granted = policy.write.iter().map(|grant| grant.real.clone());
        let inner = granted.chain(own).filter(|path| path.symlink_metadata().is_ok());
        let inner = inner.filter(|path| kept.iter().any(|own| path.starts_with(own) && path != own));
        let inner = inner.map(|path| Place { source: path.clone(), place: path, seen: Seen::Write });
        for new in as_it_is.chain(inner).chain(pins) {
            if !self.0.iter().any(|place| place.place == new.place) {
                self.0.push(new);
            }
        }
        self.0.sort_by_key(|place| place.place.components().count());
    }

    /// The same as rules of Landlock. Its rules only ever add to what is allowed below a folder, so that where no mount
    /// hides a folder, what lies around it is allowed piece by piece (`mounted: false`).
    pub(crate) fn files(&self, mounted: bool) -> Files {
        let all = || self.0.iter().filter(|place| !place.is_alias());
        let of = |seen| all().filter(move |place| place.seen == seen).map(|place| place.source.clone());
        let system = PROGRAMS.iter().map(PathBuf::from).chain(["/proc".into()]);
        let hidden: Vec<PathBuf> = if mounted { Vec::new() } else { of(Seen::Hidden).collect() };
        let (mut read, mut listed) = (Vec::new(), Vec::new());
        of(Seen::Read).for_each(|place| around(place, &hidden, &mut read, &mut listed));
        Files {
            system: system.collect(),
            read,
            listed,
            // Without a mount it would be everybody's.
            write: of(Seen::Write).chain(mounted.then(|| SHARED_MEMORY.into())).collect(),
            devices: DEVICES.iter().map(PathBuf::from).collect(),
        }
    }
}

/// A place as it is, or what is in it but for what is hidden; names in such a folder can be listed.
fn around(place: PathBuf, hidden: &[PathBuf], read: &mut Vec<PathBuf>, listed: &mut Vec<PathBuf>) {
    if hidden.contains(&place) {
        return;
    }
    if !hidden.iter().any(|other| other.starts_with(&place)) {
        return read.push(place);
    }
    for entry in std::fs::read_dir(&place).into_iter().flatten().filter_map(Result::ok) {
        // A link has no content of its own: what it leads to is allowed where that lies, or not at all.
        if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
            around(entry.path(), hidden, read, listed);
        }
    }
    listed.push(place);
}

/// The folders of the system as they are: links stay links.
pub(crate) fn system() -> impl Iterator<Item = &'static Path> {
    PROGRAMS.iter().map(Path::new).filter(|path| path.symlink_metadata().is_ok())
}

/// An absolute path without `.` and `..`, by its text alone.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

/// Whether something is at a place. That it can't be told is for the tool to find out.
///
/// # Errors
/// A link where there was none: the place was checked without it.
fn is_there(real: &Path) -> io::Result<bool> {
    match exact::hold(real) {
        Ok(_) => Ok(true),
        Err(error) if matches!(error.raw_os_error(), Some(libc::ELOOP | libc::ENOTDIR)) => Err(swapped(real)),
        Err(_) => Ok(false),
    }
}

/// Why nothing is started: the tool would reach what nobody has granted.
pub(crate) fn swapped(real: &Path) -> io::Error {
    io::Error::other(format!("{} has become a link since it was checked: it is not granted", real.display()))
}

/// Makes what may be written and is not there yet: a folder, or a file if its name has an extension, with the folders
/// around it. Only what is there can be shown to a sandbox. What lies in another grant can be made by the tool itself,
/// and is, where other programs look for its name.
pub(crate) fn make_writable(grants: &[Grant]) {
    let around = |real: &Path| grants.iter().any(|other| real != other.real && real.starts_with(&other.real));
    let meant = |real: &Path| configuration::is_name(real) && around(real);
    for grant in grants.iter().filter(|grant| grant.real.symlink_metadata().is_err() && !meant(&grant.real)) {
        let is_folder =
            grant.real.extension().is_none() || grant.name.as_os_str().as_encoded_bytes().ends_with(b"/");
        // What cannot be made cannot be written by the tool either, which then says so.
        let _ = match is_folder {
            true => exact::make_folder(&grant.real).map(drop),
            false => exact::make_file(&grant.real),
        };
    }
}

#[cfg(test)]
mod tests;
