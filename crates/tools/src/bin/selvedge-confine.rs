//! The launcher of confined programs on its own, for tests and for programs that use this crate without the command
//! line: see `selvedge_sandbox::isolation::confine`.

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    selvedge_sandbox::isolation::confine::main(std::env::args_os().skip(1))
}

#[cfg(not(target_os = "linux"))]
fn main() {}
