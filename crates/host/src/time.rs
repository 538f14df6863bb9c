//! Times as JSON has them, and as people are told them.

/// A time as RFC 3339 in UTC with milliseconds: `2025-03-01T12:00:00.250Z`. All JSON output has times in this form.
pub fn rfc3339(ms: i64) -> String {
    let (year, month, day) = date(ms.div_euclid(86_400_000));
    let of_day = ms.rem_euclid(86_400_000);
    let (hour, minute, second) = (of_day / 3_600_000, of_day / 60_000 % 60, of_day / 1000 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", of_day % 1000)
}

/// A time for people, to the second, without its zone: `2025-03-01 12:00:00`.
pub fn plain(ms: i64) -> String {
    rfc3339(ms).replace('T', " ").split('.').next().unwrap_or_default().to_owned()
}

/// The same with its zone: `2025-03-01 12:00:00 UTC`.
pub fn told(ms: i64) -> String {
    format!("{} UTC", plain(ms))
}

/// The first whole second at or after a time, as [`told`]: who comes then is not too early.
pub fn told_from(ms: i64) -> String {
    told(ms.saturating_add(999))
}

/// Year, month and day of a number of days since 1970-01-01, in the Gregorian calendar. Years are counted from
/// March here, so that the day that comes and goes is a year's last.
fn date(days: i64) -> (i64, i64, i64) {
    const DAYS_OF_400_YEARS: i64 = 146_097;
    // From 0000-03-01.
    let days = days + 719_468;
    let era = days.div_euclid(DAYS_OF_400_YEARS);
    let day = days.rem_euclid(DAYS_OF_400_YEARS);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + i64::from(month <= 2), month, date)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_times() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_740_830_400_250, "2025-03-01T12:00:00.250Z"),
            (4_107_542_399_999, "2100-02-28T23:59:59.999Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(ms), text);
        }
        assert_eq!(plain(1_740_830_400_250), "2025-03-01 12:00:00");
    }

    #[test]
    fn a_day_is_the_next_of_its_month_or_the_first_of_the_next() {
        let mut before = date(-150_001);
        for day in -150_000..150_000_i64 {
            let now = date(day);
            let next_day = (before.0, before.1, before.2 + 1);
            let next_month = (before.0 + before.1 / 12, before.1 % 12 + 1, 1);
            assert!(
                (now == next_day && now.2 <= 31) || (now == next_month && before.2 >= 28),
                "{before:?} {now:?}"
            );
            before = now;
        }
    }
}
