//! Ctrl-C, SIGTERM and a terminal that closes (C-05): once to wind down, twice to stop at once.

use crate::ui::Ui;
use selvedge_runtime::Stop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::watch;

/// Who listens for signals; the first `interrupt` winds a run down, the second stops it.
#[derive(Clone, Debug)]
pub(crate) struct Signals {
    /// For the driver.
    pub(crate) stop: Stop,
    came: watch::Receiver<bool>,
    asking: Arc<AtomicBool>,
}

/// As long as this is there a person is asked, and nothing is in flight that may still end.
pub(crate) struct OnlyAsking(Arc<AtomicBool>);

impl Drop for OnlyAsking {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

impl Signals {
    /// Begins to listen. Where the system refuses a handler, the signal's own effect stays: the run ends at
    /// once, and can be resumed like after any crash.
    pub(crate) fn listen(ui: &Ui) -> Self {
        let stop = Stop::default();
        let (tell, came) = watch::channel(false);
        let (heard, ui) = (stop.clone(), ui.clone());
        let asking = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&asking);
        // The handlers are in place when this returns; only the waiting goes on.
        let mut signals = Received::new();
        #[cfg(unix)]
        let no_space = {
            // With a handler in place, a file that reaches the user's limit on sizes (`ulimit -f`) is an error
            // of the write, told like a full disk, and not a signal that ends the process.
            use tokio::signal::unix::{SignalKind, signal};
            signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw())).ok()
        };
        tokio::spawn(async move {
            #[cfg(unix)]
            let _no_space = no_space;
            loop {
                signals.next().await;
                match heard.level() {
                    0 if asked.load(Ordering::Relaxed) => {}
                    0 => ui.note("stopping: calls in flight may end within 5 s; once more stops at once"),
                    _ => ui.note("stopping at once"),
                }
                heard.interrupt();
                tell.send_replace(true);
            }
        });
        Self { stop, came, asking }
    }

    /// Says that nothing but a question keeps the run, until the result is dropped: who interrupts it needs no word of calls.
    pub(crate) fn only_asking(&self) -> OnlyAsking {
        self.asking.store(true, Ordering::Relaxed);
        OnlyAsking(Arc::clone(&self.asking))
    }

    /// Waits for the first signal.
    pub(crate) async fn came(&self) {
        let mut came = self.came.clone();
        if came.wait_for(|came| *came).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(unix)]
struct Received(Vec<tokio::signal::unix::Signal>);

#[cfg(unix)]
impl Received {
    fn new() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        let mut kinds = vec![SignalKind::interrupt(), SignalKind::terminate()];
        kinds.extend(hangup_counts().then(SignalKind::hangup));
        Self(kinds.into_iter().filter_map(|kind| signal(kind).ok()).collect())
    }

    async fn next(&mut self) {
        std::future::poll_fn(|context| {
            let ready = self.0.iter_mut().any(|signal| signal.poll_recv(context).is_ready());
            if ready { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        })
        .await;
    }
}

/// Whether a terminal that closes ends what runs in it. `nohup` says no, by having the signal ignored, and a handler
/// would take that back. Where that can't be found out the signal keeps its own effect, after which a run can be
/// resumed as well.
#[cfg(unix)]
fn hangup_counts() -> bool {
    let ignored = |status: &str| {
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
        let mask = u64::from_str_radix(mask.trim(), 16).ok()?;
        Some(mask >> (rustix::process::Signal::HUP.as_raw() - 1) & 1 == 1)
    };
    std::fs::read_to_string("/proc/self/status").ok().and_then(|status| ignored(&status)) == Some(false)
}

#[cfg(not(unix))]
struct Received;

#[cfg(not(unix))]
impl Received {
    fn new() -> Self {
        Self
    }

    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
