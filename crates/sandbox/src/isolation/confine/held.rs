//! The program that becomes another one once it is told to (E-13).

use super::REFUSED;
use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Waits and becomes the program; `args` are those of [`HELD`](crate::reaper::HELD). Returns where nobody tells it any
/// more.
pub(super) fn become_program(args: &[OsString]) -> io::Result<u8> {
    let [go, failed, _, program, args @ ..] = args else {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "two descriptors and a program are expected",
        ));
    };
    let mut go = taken(go, OpenOptions::new().read(true))?;
    let mut failed = taken(failed, OpenOptions::new().write(true))?;
    if go.read(&mut [0])? == 0 {
        return Ok(REFUSED);
    }
    drop(go);
    let error = Command::new(program).args(args).exec();
    if let Some(number) = error.raw_os_error() {
        failed.write_all(&number.to_ne_bytes())?;
    }
    Err(error)
}

/// An inherited descriptor, opened anew so that it is not handed on.
fn taken(number: &OsStr, how: &OpenOptions) -> io::Result<File> {
    let file = how.open(Path::new("/proc/self/fd").join(number))?;
    if let Some(inherited) = number.to_str().and_then(|number| number.parse::<i32>().ok()) {
        let _ = nix::unistd::close(inherited);
    }
    Ok(file)
}
