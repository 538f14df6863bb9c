//! Models and tools behind the runtime's ports ([`selvedge_runtime::ports`]).
//!
//! - [`models`]: providers over HTTP, the scripted model, and the router from roles to models.
//! - [`tools`]: the catalogue of Python files, commands and built-ins, with permissions and environments.
//! - [`http`]: the clients that both share.
//!
//! # Example
//! ```
//! use selvedge_adapters::models::scripted::Scripted;
//!
//! let rules = "- when: {contains: hello}\n  reply: {text: Hello!}\n";
//! assert!(Scripted::parse("rules.yaml", rules).is_ok());
//! let error = Scripted::parse("rules.yaml", "- wen: {}\n  reply: {empty: true}\n").err().expect("a misspelt key");
//! assert_eq!(error.line, 1);
//! ```

pub mod http;
pub mod models;
mod surrogates;
pub mod tools;
