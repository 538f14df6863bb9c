//! How far work is that takes longer than a second, for who waits for it.

use crate::ui::Ui;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// When it is told for the first time, and how often from then on.
const FIRST: Duration = Duration::from_secs(1);
const EACH: Duration = Duration::from_secs(2);

/// Tells on stderr how far some work is.
pub(crate) struct HowFar {
    ui: Ui,
    began: Instant,
    /// When it was told last.
    told: Mutex<Option<Duration>>,
}

impl HowFar {
    /// Of work that begins now.
    pub(crate) fn new(ui: Ui) -> Self {
        Self { ui, began: Instant::now(), told: Mutex::default() }
    }

    /// Tells `line` if it is time to; that is given how long the work has taken so far.
    pub(crate) fn at(&self, line: impl FnOnce(Duration) -> String) {
        let now = self.began.elapsed();
        // Who can't tell now, as another thread does, tells another time.
        let Ok(mut told) = self.told.try_lock() else { return };
        if now < told.map_or(FIRST, |told| told + EACH) {
            return;
        }
        *told = Some(now);
        self.ui.note(&line(now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is done at once tells nothing; what takes longer does, and not all the time.
    #[test]
    fn it_is_told_from_a_second_on() {
        let mut far = HowFar::new(Ui { quiet: true, ..Ui::default() });
        far.at(|_| panic!("it has begun just now"));
        far.began = Instant::now().checked_sub(Duration::from_secs(60)).unwrap();
        let mut told = 0;
        far.at(|now| {
            told += usize::from(now >= Duration::from_secs(60));
            String::new()
        });
        assert_eq!(told, 1);
        *far.told.lock().unwrap() = Some(Duration::from_secs(3600));
        far.at(|_| panic!("it was told a moment ago"));
    }
}
