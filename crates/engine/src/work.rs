//! What looks at a run come by, counted for tests: frames, nodes and messages. A look costs what it shows, and no clock is needed to
//! see that.

use std::cell::Cell;

thread_local!(static STEPS: Cell<usize> = const { Cell::new(0) });

/// A look comes by something.
pub(crate) fn step() {
    STEPS.with(|steps| steps.set(steps.get() + 1));
}

/// What a look sees, and how much it came by.
pub(crate) fn of<T>(look: impl FnOnce() -> T) -> (T, usize) {
    STEPS.with(|steps| steps.set(0));
    let seen = look();
    (seen, STEPS.with(Cell::get))
}
