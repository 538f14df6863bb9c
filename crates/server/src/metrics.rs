//! What whoever operates a server wants to know (S-10), in the text format of Prometheus.

use crate::problem::Problem;
use selvedge_engine::{Event, Outcome, Record, Tokens};
use selvedge_store::{DB_FILE, Store};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The media type of the text.
pub(crate) const KIND: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Upper bounds of how long calls took, in milliseconds.
const BOUNDS: [u32; 9] = [10, 50, 100, 500, 1_000, 5_000, 30_000, 120_000, 600_000];

/// What has been counted since the server started.
#[derive(Default)]
pub(crate) struct Metrics {
    counts: Mutex<Counts>,
    /// Who is sent a run's events.
    pub(crate) watchers: AtomicU64,
}

#[derive(Default)]
struct Counts {
    /// Calls of runs that are driven here, by what was called and what came of it.
    calls: BTreeMap<(&'static str, &'static str), u64>,
    /// Of all of them: how many took no longer than each of [`BOUNDS`], how many in all, and how long all of them took.
    took: [u64; BOUNDS.len()],
    all: u64,
    took_ms: u64,
    tokens: Tokens,
    /// Answers by their status.
    answers: BTreeMap<u16, u64>,
    /// Deliveries of webhooks by what came of them.
    deliveries: BTreeMap<&'static str, u64>,
}

impl Metrics {
    fn with(&self, count: impl FnOnce(&mut Counts)) {
        count(&mut self.counts.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Counts what a run has done.
    pub(crate) fn records(&self, records: &[Record]) {
        for record in records {
            let Event::Completed { outcome, took, .. } = &record.event else { continue };
            let (of, came, tokens) = match outcome {
                Outcome::Reply(reply) => ("model", "done", Some(&reply.tokens)),
                Outcome::Output(_) => ("tool", "done", None),
                Outcome::Operated(operated) => ("operation", "done", Some(&operated.tokens)),
                Outcome::Failed(failure) => ("call", failure.fault.kind.name(), None),
            };
            self.with(|counts| {
                *counts.calls.entry((of, came)).or_default() += 1;
                if let Some(tokens) = tokens {
                    counts.tokens.add(tokens);
                }
                if let Some(took) = took {
                    counts.all += 1;
                    counts.took_ms += u64::from(took.worked_ms);
                    for (count, bound) in counts.took.iter_mut().zip(BOUNDS) {
                        *count += u64::from(took.worked_ms <= bound);
                    }
                }
            });
        }
    }

    /// Counts an answer.
    pub(crate) fn answered(&self, status: u16) {
        self.with(|counts| *counts.answers.entry(status).or_default() += 1);
    }

    /// Counts a delivery of a webhook.
    pub(crate) fn delivered(&self, came: &'static str) {
        self.with(|counts| *counts.deliveries.entry(came).or_default() += 1);
    }

    /// All of it; so many runs that are driven here go on, and so many wait for a person.
    pub(crate) fn text(&self, store: &Store, (going, waiting): (usize, usize)) -> Result<String, Problem> {
        let mut text = String::new();
        let mut gauge = |name: &str, about: &str, rows: Vec<(String, f64)>, kind: &str| {
            let _ = writeln!(text, "# HELP selvedge_{name} {about}\n# TYPE selvedge_{name} {kind}");
            for (labels, value) in rows {
                let _ = writeln!(text, "selvedge_{name}{labels} {value}");
            }
        };
        let plain = |value: f64| vec![(String::new(), value)];
        let runs = store.counts_of_runs()?;
        let runs = runs.into_iter().map(|(status, count)| (format!("{{status=\"{status}\"}}"), count as f64));
        gauge("runs", "Runs in the state folder, by status", runs.collect(), "gauge");
        let driven = vec![
            ("{state=\"going\"}".to_owned(), going as f64),
            ("{state=\"waiting\"}".to_owned(), waiting as f64),
        ];
        gauge("driven_runs", "Runs that this server drives", driven, "gauge");
        let watchers = self.watchers.load(Ordering::Relaxed) as f64;
        gauge("watchers", "Who is sent the events of a run", plain(watchers), "gauge");
        let owed = plain(store.count_owed()? as f64);
        gauge("webhook_deliveries_owed", "Deliveries that have not arrived yet", owed, "gauge");
        let bytes = store.dir().and_then(|dir| std::fs::metadata(dir.join(DB_FILE)).ok());
        gauge(
            "journal_bytes",
            "Bytes of the database",
            plain(bytes.map_or(0.0, |file| file.len() as f64)),
            "gauge",
        );
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let calls = counts.calls.iter();
        let calls =
            calls.map(|((of, came), count)| (format!("{{kind=\"{of}\",outcome=\"{came}\"}}"), *count as f64));
        gauge("effects_total", "Calls that came to an end, by kind and outcome", calls.collect(), "counter");
        let tokens = vec![
            ("{direction=\"input\"}".to_owned(), counts.tokens.input as f64),
            ("{direction=\"output\"}".to_owned(), counts.tokens.output as f64),
        ];
        gauge("tokens_total", "Tokens of models", tokens, "counter");
        gauge(
            "cost_total",
            "What models cost, in the price table's currency",
            plain(counts.tokens.shown_cost()),
            "counter",
        );
        let answers = counts.answers.iter();
        let answers = answers.map(|(status, count)| (format!("{{status=\"{status}\"}}"), *count as f64));
        gauge("http_responses_total", "Answers to requests, by status", answers.collect(), "counter");
        let deliveries = counts.deliveries.iter();
        let deliveries = deliveries.map(|(came, count)| (format!("{{outcome=\"{came}\"}}"), *count as f64));
        gauge(
            "webhook_attempts_total",
            "Deliveries that were sent, by what came of them",
            deliveries.collect(),
            "counter",
        );
        let name = "selvedge_effect_seconds";
        let _ = writeln!(text, "# HELP {name} How long calls took\n# TYPE {name} histogram");
        for (count, bound) in counts.took.iter().zip(BOUNDS) {
            let _ = writeln!(text, "{name}_bucket{{le=\"{}\"}} {count}", f64::from(bound) / 1000.0);
        }
        let (all, seconds) = (counts.all, counts.took_ms as f64 / 1000.0);
        let _ =
            writeln!(text, "{name}_bucket{{le=\"+Inf\"}} {all}\n{name}_sum {seconds}\n{name}_count {all}");
        Ok(text)
    }
}
