//! Names that tools may not have.

use selvedge_engine::graph::{INTERNAL, is_operation};

/// What is wrong with a name that begins as those of Selvedge's own tools do; `None` for any other name.
pub fn reserved(name: &str) -> Option<String> {
    let message =
        || format!("the name `{name}` begins with `{INTERNAL}`, which is kept for Selvedge's own tools");
    is_operation(name).then(message)
}
