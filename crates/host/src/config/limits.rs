//! `[limits]`: what each can be (C-14, E-28).

use super::read::Reader;
use super::settings::Config;
use selvedge_dialects::Finding;
use selvedge_dialects::fields::{Fields, Shape};
use selvedge_dialects::json::{Kind, Node};

pub(super) const LIMITS: Shape = Shape {
    what: "[limits]",
    fields: &[
        "calls_per_reply",
        "concurrency",
        "document_bytes",
        "events",
        "expression_cost",
        "fanout",
        "first_token_timeout_s",
        "json_nesting",
        "loop_iterations",
        "max_parallel",
        "message_bytes",
        "model_attempts",
        "model_request_bytes",
        "model_timeout_s",
        "nodes",
        "rate_limit_wait_s",
        "retry_span_s",
        "retry_wait_s",
        "run_timeout_s",
        "schema_steps",
        "subgraph_depth",
        "timers",
        "tool_output_bytes",
        "tool_timeout_s",
    ],
};

impl Reader<'_> {
    /// Puts what the table says over what is configured.
    pub(super) fn limits(&mut self, node: &Node<'_>, config: &mut Config) {
        let Some(fields) = Fields::open(node, &LIMITS, "E-28", self.diagnostics) else { return };
        for key in LIMITS.fields {
            let Some(given) = fields.given(key) else { continue };
            let number = if let Kind::Number(number) = &given.kind { number.as_f64() } else { None };
            let range = Range::of(key);
            if let Some(number) = number.filter(|number| range.has(*number)) {
                config.limits.values.insert(key, number);
                continue;
            }
            let found = number.map_or_else(|| given.type_in_words().to_owned(), |number| number.to_string());
            let message = format!("`{key}` must be {}, not {found}", range.words());
            let code = if number.is_some() { "bad-limit" } else { "wrong-type" };
            self.diagnostics.push(
                Finding::error("E-28", code, given.span, message).help("leave the key out for the default"),
            );
        }
    }
}

/// What a limit can be. There is no largest: what no count reaches is no limit.
struct Range {
    /// Seconds, which may have parts, and not a count.
    seconds: bool,
    /// What 0 means, where it means something.
    zero: Option<&'static str>,
}

impl Range {
    fn of(key: &str) -> Self {
        let zero = match key {
            "model_request_bytes" => Some("0 is no limit"),
            "rate_limit_wait_s" | "retry_span_s" => Some("0 waits for nothing"),
            _ => None,
        };
        Self { seconds: key.ends_with("_s") && key != "run_timeout_s", zero }
    }

    fn has(&self, number: f64) -> bool {
        (number > 0.0 || self.zero.is_some() && number == 0.0) && (self.seconds || number.fract() == 0.0)
    }

    fn words(&self) -> String {
        match (self.seconds, self.zero) {
            (true, None) => "a number of seconds above 0".to_owned(),
            (true, Some(zero)) => format!("a number of seconds from 0 on ({zero})"),
            (false, None) => "a whole number from 1 on".to_owned(),
            (false, Some(zero)) => format!("a whole number from 0 on ({zero})"),
        }
    }
}
