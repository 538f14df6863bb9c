//! Which layers work here: tried by starting a launcher that sets all of them and says how it went.

use crate::files::write_whole;
use crate::isolation::confine::Tried;
use crate::isolation::groups::Groups;
use crate::isolation::{Found, Isolation, Layer, Missing, Start, USERS};
use crate::launcher::Launcher;
use crate::process::{End, Launch, run};
use serde::{Deserialize, Serialize};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::Duration;

/// Where the numbers of tools' users begin, if they are there: far from those of people and services.
pub(super) const FIRST_USER: u32 = 0x6000_0000;

/// What is kept between processes.
#[derive(Serialize, Deserialize)]
struct Kept {
    circumstances: String,
    found: Found,
}

impl Isolation {
    /// Asks the kernel, or what was kept of its last answer under the same circumstances.
    ///
    /// Boxed, because trying a layer is running a program, which may ask for this.
    pub(super) fn look(&self) -> Pin<Box<dyn Future<Output = Found> + Send + '_>> {
        Box::pin(self.looked())
    }

    async fn looked(&self) -> Found {
        let mut found = self.layers().await;
        if self.0.launcher.is_some() {
            self.look_for_groups(&mut found);
        }
        found
    }

    /// Control groups are looked for by each process: what it may make of them depends on where it is.
    fn look_for_groups(&self, found: &mut Found) {
        let groups = match self.0.off.contains(&Layer::Cgroups) {
            true => Err("switched off".to_owned()),
            false => Groups::find(),
        };
        let (groups, why) = match groups {
            Ok(groups) => (Some(groups.clone()), groups.lack()),
            Err(why) => (None, Some(why)),
        };
        match why {
            None => found.held.push(Layer::Cgroups),
            Some(why) => found.optional.push(Missing { layer: Layer::Cgroups, why }),
        }
        // Without limits, a group ends what it holds, as a namespace of processes does at less cost.
        let ends_more = !found.holds(Layer::Namespaces) || self.0.grouped;
        found.groups = groups.filter(|groups| groups.limits || ends_more);
    }

    async fn layers(&self) -> Found {
        let Some(launcher) = &self.0.launcher else {
            let why = "this program does not know its launcher".to_owned();
            let missing = Layer::ALL.map(|layer| Missing { layer, why: why.clone() });
            return Found { missing: missing.into(), warm: Some(why), ..Found::default() };
        };
        let bubblewrap = self.on_path("bwrap");
        let circumstances = circumstances(launcher, bubblewrap.as_deref());
        if let (Some(file), Some(now)) = (&self.0.kept, &circumstances) {
            let kept = std::fs::read(file).ok().and_then(|bytes| serde_json::from_slice::<Kept>(&bytes).ok());
            if let Some(kept) = kept.filter(|kept| kept.circumstances == *now) {
                return kept.found;
            }
        }
        let found = self.try_all(launcher, bubblewrap).await;
        if let (Some(file), Some(circumstances)) = (&self.0.kept, circumstances) {
            // What is missing may come back: only good news is kept.
            if found.enforced() && found.warm.is_none() {
                let kept = Kept { circumstances, found: found.clone() };
                let _ = serde_json::to_vec(&kept).map(|bytes| write_whole(file, &bytes));
            }
        }
        found
    }

    fn on_path(&self, name: &str) -> Option<PathBuf> {
        let mut found = self
            .0
            .search
            .iter()
            .map(|folder| folder.join(name))
            .filter(|path| rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok());
        found.find(|path| path.is_file())
    }

    /// Forgets what was kept when it did not come true, so that the next process asks the kernel again.
    pub(crate) fn forget(&self) {
        if let Some(file) = &self.0.kept {
            // Without a file, there is nothing to forget.
            let _ = std::fs::remove_file(file);
        }
    }

    async fn try_all(&self, launcher: &Launcher, bubblewrap: Option<PathBuf>) -> Found {
        let off = |layer| self.0.off.contains(&layer);
        let switched_off = || "switched off".to_owned();
        let users = users();
        let mut missing = Vec::new();
        let mut tried = None;
        let outside = match &bubblewrap {
            _ if off(Layer::Namespaces) => Some(switched_off()),
            None => Some("bubblewrap is not installed (no `bwrap` on PATH)".to_owned()),
            Some(path) => match attempt(launcher, Some(path), users).await {
                Ok(all) => {
                    tried = Some(all);
                    None
                }
                Err(why) => Some(format!("{} does not work here: {why}", path.display())),
            },
        };
        if tried.is_none() {
            tried = attempt(launcher, None, users).await.map_err(|why| missing_all(&why, &mut missing)).ok();
        }
        let namespaces = outside.is_none();
        missing.extend(outside.map(|why| Missing { layer: Layer::Namespaces, why }));
        let tried = tried.unwrap_or_default();
        let landlock = if off(Layer::Landlock) { Some(switched_off()) } else { tried.landlock };
        // The right to read everything that is seen takes a layer that limits what is seen.
        let identity = match tried.identity {
            _ if off(Layer::Identity) => Some(switched_off()),
            None if !namespaces && landlock.is_some() => {
                Some("nothing limits the files that it could read".into())
            }
            None if rustix::process::geteuid().is_root() && users.is_none() => {
                Some("there is no other user number in this user namespace".into())
            }
            other => other,
        };
        let limits = if off(Layer::Limits) { Some(switched_off()) } else { tried.limits };
        let seccomp = if off(Layer::Seccomp) { Some(switched_off()) } else { tried.seccomp };
        let inner = [
            (Layer::Identity, identity),
            (Layer::Limits, limits),
            (Layer::Landlock, landlock),
            (Layer::Seccomp, seccomp),
        ];
        for (layer, why) in inner {
            let known = missing.iter().any(|missing| missing.layer == layer);
            missing.extend(why.filter(|_| !known).map(|why| Missing { layer, why }));
        }
        let held: Vec<Layer> =
            Layer::ALL.into_iter().filter(|layer| !missing.iter().any(|m| m.layer == *layer)).collect();
        let users = users.filter(|_| held.contains(&Layer::Identity));
        let warm = match tried.nested {
            // A server leans on each of them.
            None if missing.is_empty() => None,
            None => Some("a layer of isolation is missing".to_owned()),
            why => why,
        };
        let bubblewrap = bubblewrap.filter(|_| namespaces);
        Found { bubblewrap, held, missing, users, warm, ..Found::default() }
    }
}

fn missing_all(why: &str, missing: &mut Vec<Missing>) {
    let inner = [Layer::Identity, Layer::Limits, Layer::Landlock, Layer::Seccomp];
    let why = format!("the launcher does not work here: {why}");
    missing.extend(inner.map(|layer| Missing { layer, why: why.clone() }));
}

async fn attempt(
    launcher: &Launcher,
    bubblewrap: Option<&Path>,
    users: Option<u32>,
) -> Result<Tried, String> {
    let Start { program, args, handed, .. } =
        Isolation::trial(launcher, bubblewrap, users).ok_or("its folder has a name that is not UTF-8")?;
    let finished = run(Launch {
        timeout: Duration::from_secs(10),
        output_bytes: 64 << 10,
        handed,
        ..Launch::own(program, args, Vec::new(), "/".into())
    })
    .await
    .map_err(|e| e.to_string())?;
    match serde_json::from_slice(&finished.stdout) {
        Ok(tried) if finished.end == End::Exited(0) => Ok(tried),
        _ => Err(finished.stderr_end(300)),
    }
}

/// The first number for tools' users: root of this user namespace can become them.
fn users() -> Option<u32> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let map = std::fs::read_to_string("/proc/self/uid_map").ok()?;
    let ranges = map.lines().filter_map(|line| {
        let mut fields = line.split_whitespace().map(|field| field.parse::<u32>().ok());
        Some((fields.next()??, fields.nth(1)??))
    });
    let (first, count) = ranges.max_by_key(|(_, count)| *count)?;
    let end = first.checked_add(count)?;
    if first <= FIRST_USER && FIRST_USER.saturating_add(USERS) <= end {
        return Some(FIRST_USER);
    }
    // In a container with few numbers, the upper half of them.
    (count >= 2 * USERS).then(|| end - USERS)
}

/// Everything that the answer depends on and that can be seen.
fn circumstances(launcher: &Launcher, bubblewrap: Option<&Path>) -> Option<String> {
    let stamp = |path: &Path| {
        let meta = std::fs::metadata(path).ok()?;
        Some(format!("{} {} {}", path.display(), meta.len(), meta.mtime()))
    };
    let link =
        |name: &str| Some(std::fs::read_link(format!("/proc/self/ns/{name}")).ok()?.display().to_string());
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let rights: Vec<_> = status
        .lines()
        .filter(|line| {
            ["Uid:", "CapEff:", "CapBnd:", "NoNewPrivs:", "Seccomp:"].iter().any(|p| line.starts_with(p))
        })
        .collect();
    let parts = [stamp(&launcher.program)?, stamp(bubblewrap?)?, link("user")?, link("mnt")?, link("pid")?];
    Some(format!("{} {} {}", boot.trim(), parts.join(" "), rights.join(" ")))
}
