//! `selvedge serve`, the built binary over real HTTP on loopback (rules S).

mod acts;
mod http;
mod looks;
mod watches;
mod who;
