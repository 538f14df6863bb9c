//! How long something took, or has taken so far, for people.

/// A time that is over: `0.05 s`, `12.3 s`, `4m05s`.
pub(crate) fn seconds(ms: i64) -> String {
    let ms = ms.max(0);
    match ms {
        0..10_000 => format!("{}.{:02} s", ms / 1000, ms % 1000 / 10),
        10_000..100_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        _ => minutes(ms),
    }
}

/// A time that goes on: tenths of seconds at first, so that a line does not change more often than it must.
pub(crate) fn elapsed(ms: i64) -> String {
    let ms = ms.max(0);
    match ms {
        0..10_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        10_000..100_000 => format!("{} s", ms / 1000),
        _ => minutes(ms),
    }
}

fn minutes(ms: i64) -> String {
    match ms {
        0..6_000_000 => format!("{}m{:02}s", ms / 60_000, ms % 60_000 / 1000),
        _ => format!("{}h{:02}m", ms / 3_600_000, ms % 3_600_000 / 60_000),
    }
}
