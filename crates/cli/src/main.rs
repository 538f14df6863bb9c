//! The `selvedge` binary.
fn main() {}
