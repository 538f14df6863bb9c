//! Document formats ("dialects"): how a file becomes a typed document, and what is found wrong with it.
//!
//! The layers, each usable alone:
//!
//! 1. [`document`]: a file's text, with fast line and column look-up ([`Source`]).
//! 2. [`json`]: strict JSON in which every key and value knows its place ([`Node`], [`Span`]).
//! 3. [`diagnostic`]: findings about a document, their places, and how they are shown ([`Diagnostics`]).
//! 4. [`fields`]: reading the fields of an object, misspelt and unknown ones included (`E-32`).
//! 5. [`head`], [`inputs`], [`settings`]: what documents of every dialect say besides their nodes or steps, and at them.
//! 6. [`mod@recognise`]: which dialect a document is written in (`C-11`).
//! 7. [`plan`]: the typed plan document, its checks, and its lowering.
//! 8. [`steps`]: the same of step tasks, and of steps that a model writes while one runs.
//! 9. [`workflow`]: the same of workflows.
//! 10. [`agent`]: the operations of agents. [`evolve`]: what is done with what they have made.
//! 11. [`compile`]: all of it, from text to the engine's graph ([`Document`]).
//! 12. [`schema`]: JSON Schemas of documents, for editors.
//! 13. [`mod@migrate`]: documents in older forms, and in today's.
//!
//! Reading never stops at the first finding: it returns what it could read, and every finding goes to the
//! [`Diagnostics`] collector.
//!
//! # Example
//! ```
//! use selvedge_dialects::{Diagnostics, DocumentLimits, NoTools, Source, read, recognise::Choice};
//!
//! let text = r#"{"task": "Say hello", "nodes": [{"node_type": "llm-first", "node_name": "greet",
//!     "thread_id": "t", "data_in_thread": "man", "task_prompt": "Go on"}]}"#;
//! let (source, limits) = (Source::new("plan.json", text), DocumentLimits::default());
//! let mut found = Diagnostics::new();
//! let document = read(&source, Choice::default(), &limits, &mut found).expect("a plan");
//! let graph = document.compile(&NoTools, &serde_json::Map::new(), &Default::default(), &mut found);
//! assert!(graph.is_none());
//! let first = &found.report(&source)[0];
//! assert_eq!((first.rule, first.line, first.help.as_str()), ("P-07", Some(2), "did you mean \"main\"?"));
//! ```

pub mod agent;
mod arguments;
mod capabilities;
mod checks;
pub mod compile;
pub mod diagnostic;
pub mod document;
pub mod evolve;
pub mod fields;
mod files;
pub mod head;
pub mod inputs;
pub mod json;
mod leaves;
pub mod limits;
pub mod migrate;
mod outputs;
pub mod plan;
pub mod recognise;
pub mod schema;
pub mod settings;
pub mod steps;
mod tool_source;
mod types;
pub mod workflow;

pub use capabilities::Capabilities;
pub use checks::unchecked_pattern;
pub use compile::{Document, read};
pub use diagnostic::{Diagnostic, Diagnostics, Finding, Severity};
pub use document::Source;
pub use files::Files;
pub use json::{Node, Span, Spanned};
pub use limits::DocumentLimits;
pub use recognise::{Dialect, recognise};
pub use tool_source::{NameTrouble, NoTools, ToolSource};
