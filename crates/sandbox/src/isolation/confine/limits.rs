//! Limits of the process and of all that it starts.

use super::Limits;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;

/// Sets all limits for good. The number of processes counts those of one user, so it comes after the change of user.
pub(super) fn set(limits: &Limits) -> io::Result<()> {
    let all = [
        (Resource::Core, Some(0)),
        (Resource::As, limits.memory_bytes),
        (Resource::Data, limits.memory_bytes),
        (Resource::Fsize, limits.file_bytes),
        (Resource::Nofile, limits.open_files),
        (Resource::Nproc, limits.processes),
        (Resource::Cpu, limits.cpu_seconds),
    ];
    for (resource, most) in all {
        let Some(most) = most else { continue };
        // A stricter limit that is there already stays.
        let most = getrlimit(resource).maximum.map_or(most, |present| present.min(most));
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    Ok(())
}
