//! Coders: who writes tools while a task runs. What they answer, files and words, is hostile input until it is a
//! version of the library's.

mod codex;
mod name;
mod reply;

pub use codex::{CODEX_ADDRESS, CODEX_KEY, CODEX_TIME, Codex};
pub use name::safe_name;
pub use reply::{file_of, of_size};
