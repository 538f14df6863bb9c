//! Webhooks: who is told what becomes of runs (S-09). What is owed stands in the store from the transaction on with which a run came to
//! stand so; here it is sent until it has arrived.

mod signed;

use crate::app::App;
use crate::blocking::blocking;
use crate::problem::Problem;
use futures_util::future::join_all;
use selvedge_engine::back_off;
use selvedge_host::text::one_line;
use selvedge_host::{Config, Environment, Error, report, time};
use selvedge_http::{is_transient, shown};
use selvedge_runtime::report::usage;
use selvedge_runtime::{Clock, SystemClock};
use selvedge_store::{Delivery, DriverLock, Hook, RunStatus, StoreError};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use signed::Secret;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use url::Url;

/// How long a delivery may take.
const TIMEOUT: Duration = Duration::from_secs(15);
/// Deliveries to one receiver at a time.
const AT_ONCE: u32 = 8;
/// How often it is looked for what runs have come to that other processes drive.
const LOOK: Duration = Duration::from_secs(1);
/// How often it is looked whether another server still delivers.
const OTHER: Duration = Duration::from_secs(10);
/// The longest step before a delivery is tried again, and when it is given up, in milliseconds.
const LONGEST_MS: i64 = 600_000;
const GIVEN_UP_MS: i64 = 3 * 24 * 3_600_000;
/// Characters of a fault that is told.
const FAULT: usize = 2_000;

/// Somebody who is told.
pub(crate) struct Webhook {
    hook: Hook,
    url: Url,
    secret: Secret,
}

/// All of them.
#[derive(Default)]
pub(crate) struct Webhooks {
    /// Whose they are: of these configuration files.
    owner: String,
    all: Vec<Webhook>,
    /// A run that is driven here has come to a stop.
    news: watch::Sender<()>,
}

impl Webhooks {
    /// Those that are configured.
    ///
    /// # Errors
    /// A secret is missing, or none; or the environment says nothing that can be used of how to get there.
    pub(crate) fn of(config: &Config, environment: &Environment) -> Result<Self, Error> {
        let files: Vec<String> =
            config.files.all().map(|file| environment.absolute(file).display().to_string()).collect();
        let owner = digest(&files.join("\n"));
        let mut all: Vec<Webhook> = Vec::new();
        for webhook in &config.webhooks {
            environment
                .http()
                .check(&webhook.url)
                .map_err(|wrong| Error::environment("S-09", wrong.code, &wrong.message).help(&wrong.help))?;
            let name = &webhook.secret_env;
            let given = environment.variable(name).ok_or_else(|| {
                let message = format!(
                    "the variable {name}, which is to sign webhooks to {}, is not set",
                    shown(&webhook.url)
                );
                Error::environment("S-09", "no-webhook-secret", &message).help(signed::HELP)
            })?;
            let secret = Secret::read(&given).ok_or_else(|| {
                let message = format!("what the variable {name} holds is no secret for webhooks");
                Error::environment("S-09", "bad-webhook-secret", &message).help(signed::HELP)
            })?;
            let id = digest(&format!("{owner}\n{}\n{name}", webhook.url));
            match all.iter_mut().find(|known| known.hook.id == id) {
                Some(known) => known.hook.statuses.extend(&webhook.events),
                None => all.push(Webhook {
                    hook: Hook { id, statuses: webhook.events.clone() },
                    url: webhook.url.clone(),
                    secret,
                }),
            }
        }
        Ok(Self { owner, all, news: watch::Sender::default() })
    }

    /// A run has come to a stop.
    pub(crate) fn stopped(&self) {
        self.news.send_replace(());
    }

    /// Sends what is owed, for as long as the server serves.
    pub(crate) async fn deliver(&self, app: &Arc<App>) {
        let Some(lock) = self.turn(app).await else { return };
        let hooks = self.all.iter().map(|webhook| webhook.hook.clone()).collect();
        if let Err(error) = app.store.set_hooks(&self.owner, hooks).await {
            app.host.observer.warning(&format!("no webhooks: {}", Error::from(error)));
            return;
        }
        join_all(self.all.iter().map(|webhook| webhook.deliver(app, self.news.subscribe()))).await;
        drop(lock);
    }

    /// Waits until no other server of these files delivers. `None`: there is nothing to do.
    async fn turn(&self, app: &Arc<App>) -> Option<DriverLock> {
        let mut told = false;
        loop {
            let (store, owner, idle) = (Arc::clone(&app.store), self.owner.clone(), self.all.is_empty());
            let turn = blocking(move || {
                // Where nobody is told any more, that is noted once.
                if idle && !store.has_hooks(&owner)? {
                    return Ok(None);
                }
                Ok(Some(store.deliver(&owner)))
            });
            match turn.await {
                Ok(None) => return None,
                Ok(Some(Ok(lock))) => return Some(lock),
                Ok(Some(Err(StoreError::Driven { .. }))) if !told => {
                    told = true;
                    app.host.observer.note(
                        "another server delivers the webhooks of this configuration as long as it is there",
                    );
                }
                // Tried again: a state folder that can't be read is told of by who looks at runs.
                _ => {}
            }
            tokio::time::sleep(OTHER).await;
        }
    }
}

impl Webhook {
    async fn deliver(&self, app: &Arc<App>, mut news: watch::Receiver<()>) {
        loop {
            news.borrow_and_update();
            let (store, id) = (Arc::clone(&app.store), self.hook.id.clone());
            let owed = blocking(move || Ok(store.owed(&id, AT_ONCE)?)).await.unwrap_or_default();
            let now = SystemClock.now_ms();
            // Also what is due much later than it can be, as somebody has set the clock back.
            let is_due = |owed: &Delivery| owed.next_ms <= now || owed.next_ms > now + LONGEST_MS;
            let (due, later): (Vec<Delivery>, Vec<Delivery>) = owed.into_iter().partition(is_due);
            if due.is_empty() {
                let next = later.first().and_then(|next| u64::try_from(next.next_ms - now).ok());
                let pause = next.map_or(LOOK, |ms| LOOK.min(Duration::from_millis(ms.max(1))));
                tokio::select! {
                    _ = news.changed() => {}
                    () = tokio::time::sleep(pause) => {}
                }
                continue;
            }
            let sent = join_all(due.into_iter().map(|owed| self.attempt(app, owed))).await;
            if sent.contains(&false) {
                // What came of it could not be noted: it is sent again, and not at once.
                tokio::time::sleep(LOOK).await;
            }
        }
    }

    /// Sends a delivery, and notes what came of it; whether it could.
    async fn attempt(&self, app: &Arc<App>, owed: Delivery) -> bool {
        let came = self.sent(app, &owed).await;
        app.metrics.delivered(came.word());
        let (place, run, status) = (shown(&self.url), &owed.run, owed.status.as_str());
        let tell = |why: &str| {
            app.host
                .observer
                .warning(&format!("the webhook {place} was not told that run {run} is {status}: {why}"));
        };
        let noted = match came {
            Came::Taken => app.store.settle_delivery(owed).await,
            Came::Refused(why) => {
                tell(&format!("{why}, and it is not tried again"));
                app.store.settle_delivery(owed).await
            }
            Came::Missed(why, asked) => {
                let now = SystemClock.now_ms();
                if now - owed.at_ms > GIVEN_UP_MS && owed.attempts > 0 {
                    tell(&format!("{why}, and it is given up after three days"));
                    app.store.settle_delivery(owed).await
                } else {
                    if owed.attempts == 0 {
                        tell(&format!("{why}; it is tried again"));
                    }
                    let next_ms = now + wait(&self.id(&owed), owed.attempts, asked);
                    let attempts = owed.attempts.saturating_add(1);
                    app.store.put_off_delivery(Delivery { attempts, next_ms, ..owed }).await
                }
            }
        };
        noted.is_ok()
    }

    async fn sent(&self, app: &Arc<App>, owed: &Delivery) -> Came {
        let (asking, of) = (Arc::clone(app), owed.clone());
        let body = match blocking(move || body(&asking, &of)).await {
            Ok(body) => body,
            Err(problem) => return Came::Missed(problem.error().to_string(), None),
        };
        let client = match app.host.environment.http().client(&self.url) {
            Ok(client) => client,
            Err(why) => return Came::Missed(why, None),
        };
        let (id, seconds) = (self.id(owed), SystemClock.now_ms() / 1000);
        let signature = self.secret.sign(&id, seconds, &body);
        let request = client
            .post(self.url.clone())
            .timeout(TIMEOUT)
            .header("content-type", "application/json")
            .header("webhook-id", &id)
            .header("webhook-timestamp", seconds)
            .header("webhook-signature", signature)
            .body(body);
        match request.send().await {
            Ok(answer) => {
                let asked = answer.headers().get("retry-after");
                let asked = asked.and_then(|asked| asked.to_str().ok()?.trim().parse().ok());
                Came::of(answer.status().as_u16(), asked)
            }
            Err(error) => Came::Missed(selvedge_http::chain(&error.without_url()), None),
        }
    }

    /// The delivery's own id: the same whenever it is sent.
    fn id(&self, owed: &Delivery) -> String {
        format!("msg_{}", digest(&format!("{}\n{}\n{}", self.hook.id, owed.run, owed.n)))
    }
}

/// What came of a delivery.
#[derive(Debug, PartialEq)]
enum Came {
    Taken,
    /// It is not to be sent again.
    Refused(String),
    /// It may be sent again, after so many seconds at least.
    Missed(String, Option<i64>),
}

impl Came {
    /// By the status of the answer: what E-14 calls transient may be sent again.
    fn of(status: u16, asked: Option<i64>) -> Self {
        match status {
            200..=299 => Self::Taken,
            _ if is_transient(status) => Self::Missed(format!("it answered {status}"), asked),
            _ => Self::Refused(format!("it answered {status}")),
        }
    }

    fn word(&self) -> &'static str {
        match self {
            Self::Taken => "taken",
            Self::Refused(_) => "refused",
            Self::Missed(..) => "missed",
        }
    }
}

/// Milliseconds until a delivery is tried again, as E-14 has it, and never less than was asked for. What stands for chance is the delivery's
/// own.
fn wait(id: &str, attempts: u32, asked: Option<i64>) -> i64 {
    let chance = Sha256::digest(format!("{id} {attempts}"));
    let jitter = chance.iter().take(3).fold(0, |jitter, byte| jitter << 8 | u32::from(*byte)) % 1_000_000;
    let longest = u64::try_from(LONGEST_MS).unwrap_or_default();
    let wait = i64::try_from(back_off(attempts, longest, jitter)).unwrap_or(LONGEST_MS);
    wait.max(asked.unwrap_or(0).clamp(0, LONGEST_MS / 1000) * 1000)
}

/// What is sent: the run as it was when it came to stand so, in short.
fn body(app: &App, owed: &Delivery) -> Result<String, Problem> {
    let info = app.store.run(&owed.run)?;
    let data = app.kept.look(&owed.run, Some(owed.n), |run, _| {
        let view = run.state.view();
        let fault =
            view.fault().map(|fault| json!({"kind": fault.kind, "message": one_line(&fault.message, FAULT)}));
        let asks = run.state.asks().iter().filter(|_| owed.status == RunStatus::Waiting);
        let asks = asks.map(|(id, ask)| {
            let asked = report::asked(&run.state, id, ask, None);
            json!({"ask": id, "node": asked.get("node"), "kind": asked.get("kind")})
        });
        Ok(json!({
            "run_id": owed.run, "name": info.name, "dialect": info.dialect, "status": owed.status.as_str(),
            "event": owed.n, "parent": info.parent, "usage": usage(&run.state), "fault": fault,
            "asks": asks.collect::<Vec<Value>>(),
        }))
    })?;
    let kind = format!("run.{}", owed.status.as_str());
    let object = json!({"type": kind, "timestamp": time::rfc3339(owed.at_ms), "data": data});
    Ok(app.shown(&object.to_string()))
}

/// What stands for a text, of 32 letters and digits.
fn digest(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().take(16).fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S-09: what E-14 calls transient is tried again, with steps that double.
    #[test]
    fn s09_what_may_be_mended_is_tried_again() {
        for (status, again) in
            [(408, true), (429, true), (503, true), (301, false), (404, false), (410, false)]
        {
            assert_eq!(matches!(Came::of(status, None), Came::Missed(..)), again, "{status}");
        }
        assert_eq!(Came::of(204, None), Came::Taken);
        let waits: Vec<i64> = (0..40).map(|attempts| wait("x", attempts, None)).collect();
        assert!(waits.iter().all(|ms| (250..=LONGEST_MS).contains(ms)), "{waits:?}");
        assert!(waits.iter().skip(12).all(|ms| *ms >= LONGEST_MS / 2), "{waits:?}");
        assert!(wait("x", 0, Some(30)) == 30_000 && wait("x", 0, Some(i64::MAX)) == LONGEST_MS);
    }
}
