//! Processes that a program of ours has left behind, although it has ended and its process group with it: in groups of their own,
//! or stuck in the making of a sandbox whose maker was killed in that moment.

use std::path::{Path, PathBuf};

/// Ends, when it is dropped, the processes whose command line or environment names a folder: one that only what was started for it
/// can know.
#[derive(Debug)]
pub struct Stragglers(PathBuf);

impl Stragglers {
    /// Of what works in this folder.
    #[must_use]
    pub fn of(folder: &Path) -> Self {
        Self(folder.to_owned())
    }
}

impl Drop for Stragglers {
    #[cfg(target_os = "linux")]
    fn drop(&mut self) {
        use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
        use std::os::unix::ffi::OsStrExt;

        let sought = self.0.as_os_str().as_bytes();
        let found = |text: Vec<u8>| text.windows(sought.len().max(1)).any(|part| part == sought);
        let processes = std::fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
        let numbers = processes.filter_map(|process| process.file_name().to_str()?.parse().ok());
        for pid in numbers.filter_map(Pid::from_raw) {
            // Opened first: what is read is this process's, whoever has its number afterwards.
            let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
            let names = |file: &str| {
                let path = format!("/proc/{}/{file}", pid.as_raw_nonzero());
                std::fs::read(path).is_ok_and(found)
            };
            if pid != rustix::process::getpid() && (names("cmdline") || names("environ")) {
                // It may have ended by itself meanwhile.
                let _ = pidfd_send_signal(&process, Signal::KILL);
            }
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn drop(&mut self) {}
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::{Child, Command};

    fn sleeping(command: &mut Command) -> Child {
        command.process_group(0).spawn().unwrap()
    }

    /// Whatever has the folder in its arguments or its environment ends, whichever group it is in, and nothing else.
    #[test]
    fn a07_what_was_started_for_a_folder_ends_with_it() {
        // It need not be there.
        let folder = PathBuf::from(format!("/stragglers of {}", std::process::id()));
        let mut told = sleeping(Command::new("sleep").arg("600").env("HOME", folder.join("home")));
        let mut argued = sleeping(Command::new("sleep").arg0(folder.join("work")).arg("600"));
        let mut other = sleeping(Command::new("sleep").arg("600"));
        drop(Stragglers::of(&folder));
        for child in [&mut told, &mut argued] {
            assert_eq!(child.wait().unwrap().signal(), Some(9));
        }
        assert_eq!(other.try_wait().unwrap(), None);
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
