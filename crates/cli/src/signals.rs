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
    editing: Arc<AtomicBool>,
}

/// Something is so as long as this is there.
pub(crate) struct While(Arc<AtomicBool>);

impl While {
    fn begun(flag: &Arc<AtomicBool>) -> Self {
        flag.store(true, Ordering::Relaxed);
        Self(Arc::clone(flag))
    }
}

impl Drop for While {
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
        let (asking, editing) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
        let (asked, edited) = (Arc::clone(&asking), Arc::clone(&editing));
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
                let typed = signals.next().await;
                if typed && edited.load(Ordering::Relaxed) {
                    continue;
                }
                match heard.level() {
                    0 if asked.load(Ordering::Relaxed) => {}
                    0 => ui.note("stopping: calls in flight may end within 5 s; once more stops at once"),
                    _ => ui.note("stopping at once"),
                }
                heard.interrupt();
                tell.send_replace(true);
            }
        });
        Self { stop, came, asking, editing }
    }

    /// Says that nothing but a question keeps the run, until the result is dropped: who interrupts it needs no word of calls.
    pub(crate) fn only_asking(&self) -> While {
        While::begun(&self.asking)
    }

    /// Says that an editor has the terminal, until the result is dropped: Ctrl-C is one of its keys, and interrupts no run.
    pub(crate) fn editing(&self) -> While {
        While::begun(&self.editing)
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
struct Received(Vec<(bool, tokio::signal::unix::Signal)>);

#[cfg(unix)]
impl Received {
    fn new() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        let mut kinds = vec![SignalKind::interrupt(), SignalKind::terminate()];
        kinds.extend(hangup_counts().then(SignalKind::hangup));
        let typed = SignalKind::interrupt();
        Self(kinds.into_iter().filter_map(|kind| Some((kind == typed, signal(kind).ok()?))).collect())
    }

    /// Waits for the next one: whether it was Ctrl-C.
    async fn next(&mut self) -> bool {
        std::future::poll_fn(|context| {
            let mut came = self
                .0
                .iter_mut()
                .filter_map(|(typed, signal)| signal.poll_recv(context).is_ready().then_some(*typed));
            came.next().map_or(std::task::Poll::Pending, std::task::Poll::Ready)
        })
        .await
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

    async fn next(&mut self) -> bool {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        true
    }
}
