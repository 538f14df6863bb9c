//! `selvedge serve`, the built binary over real HTTP on loopback (rules S).

mod acts;
mod http;
mod limits;
mod looks;
mod options;
mod timers;
mod tls;
mod watches;
mod webhooks;
mod who;
