//! How long something took, or has taken so far, for people.

/// A time that is over: `<1 ms`, `50 ms`, `1.05 s`, `12.3 s`, `4m05s`. Journals have whole milliseconds.
pub(crate) fn duration(ms: i64) -> String {
    let ms = ms.max(0);
    match ms {
        0 => "<1 ms".to_owned(),
        1..1_000 => format!("{ms} ms"),
        1_000..10_000 => format!("{}.{:02} s", ms / 1000, ms % 1000 / 10),
        10_000..100_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        _ => minutes(ms),
    }
}

/// [`duration`] in a column of a table, so that figures stand below each other.
pub(crate) fn duration_cell(ms: i64) -> String {
    format!("{:>6}", duration(ms))
}

/// How long after the beginning something happened: `0 ms`, else as [`duration`] has it.
pub(crate) fn offset(ms: i64) -> String {
    if ms <= 0 { "0 ms".to_owned() } else { duration(ms) }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// C-15: a time has the unit that shows something of it.
    #[test]
    fn times_have_fitting_units() {
        let shown = [-5, 0, 1, 999, 1000, 9_999, 12_345, 245_000, 7_500_000].map(duration);
        assert_eq!(
            shown,
            ["<1 ms", "<1 ms", "1 ms", "999 ms", "1.00 s", "9.99 s", "12.3 s", "4m05s", "2h05m"]
        );
        assert_eq!([0, 7].map(offset), ["0 ms", "7 ms"]);
        assert_eq!(duration_cell(7), "  7 ms");
    }
}
