//! `[recovery]`: what happens to a step that failed (C-14, D-19, D-23). A step task's own `recovery` goes over it.

use super::read::Reader;
use super::settings::Config;
use selvedge_dialects::Finding;
use selvedge_dialects::fields::{Fields, Shape};
use selvedge_dialects::json::Node;
use selvedge_dialects::steps::{Recovery, Siblings};

pub(super) const RECOVERY: Shape = Shape {
    what: "[recovery]",
    fields: &["consecutive_failures", "model", "reflections", "repairs", "replans", "retries", "siblings"],
};

/// Limits are counts of rounds and tries: more would only hide a slip of the pen.
const MOST: f64 = 1_000.0;

impl Reader<'_> {
    /// Puts what the table says over what is configured.
    pub(super) fn recovery(&mut self, node: &Node<'_>, config: &mut Config) {
        let Some(fields) = Fields::open(node, &RECOVERY, "D-23", self.diagnostics) else { return };
        let recovery = &mut config.recovery;
        if let Some(model) = fields.boolean("model", "D-23", self.diagnostics) {
            recovery.model = Some(model.value);
        }
        if let Some(siblings) = fields.choice("siblings", "D-23", &Siblings::NAMES, self.diagnostics) {
            recovery.siblings = Some(siblings.value);
        }
        let Recovery { retries, repairs, replans, consecutive_failures, reflections, .. } = recovery;
        for (field, least, limit) in [
            ("retries", 0, retries),
            ("repairs", 0, repairs),
            ("replans", 0, replans),
            ("reflections", 0, reflections),
            // None at all would end a run before anything failed.
            ("consecutive_failures", 1, consecutive_failures),
        ] {
            let Some(number) = fields.number(field, "D-19", self.diagnostics) else { continue };
            let whole = number.value.fract() == 0.0;
            if whole && number.value >= f64::from(least) && number.value <= MOST {
                // Checked just above.
                *limit = Some(number.value as u32);
                continue;
            }
            let message = format!("`{field}` must be a whole number from {least} to {MOST}");
            self.diagnostics.push(
                Finding::error("D-19", "bad-limit", number.span, message)
                    .help("leave the key out for the default"),
            );
        }
    }
}
