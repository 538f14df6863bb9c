//! What there is to say of what interrupted tools have made.

use crate::diag::one_line;
use crate::failures::made_words;
#[cfg(target_os = "linux")]
use selvedge_sandbox::process::Left;
use selvedge_sandbox::process::Made;

/// What a call has made that was dropped, so that nobody waits for it any more.
pub fn of_a_dropped_call(made: &Made) -> String {
    one_line(&made_words("a tool that was interrupted", made))
}

/// What was set aside of a call of a process that was killed, if something was.
#[cfg(target_os = "linux")]
pub fn set_aside(left: &Left) -> Option<String> {
    let made = Made { aside: left.made.aside.clone(), left: Vec::new() };
    (!made.is_empty()).then(|| one_line(&made_words(&whose(left), &made)))
}

/// The same of what could not be.
#[cfg(target_os = "linux")]
pub fn still_there(left: &Left) -> Option<String> {
    let made = Made { aside: Vec::new(), left: left.made.left.clone() };
    (!made.is_empty()).then(|| one_line(&made_words(&whose(left), &made)))
}

#[cfg(target_os = "linux")]
fn whose(left: &Left) -> String {
    let which = if left.tool.is_empty() { "a tool".to_owned() } else { format!("the tool `{}`", left.tool) };
    format!("{which} of a selvedge that was killed")
}
