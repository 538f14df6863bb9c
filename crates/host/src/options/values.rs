//! Values of options and variables that are read here: addresses, caps, times (C-01).

use crate::error::Error;
use selvedge_dialects::diagnostic::shown;
use selvedge_engine::Budget;
use url::Url;

/// The longest time limit, in seconds: thirty years.
const LONGEST: f64 = 1e9;

/// The address of an endpoint, as it was given.
///
/// # Errors
/// `Usage`, with the address, for one that no request can go to.
pub fn base_url(text: &str, option: &str) -> Result<String, Error> {
    let Some(why) = no_address(text) else { return Ok(text.to_owned()) };
    let message = format!("`{option}` takes an address, not {}: {why}", shown(&without_user(text)));
    // A variable of the environment is set with a `=`.
    let set = if option.starts_with('-') { ' ' } else { '=' };
    let help = format!("write the version part, too, as in {option}{set}http://127.0.0.1:8000/v1");
    Err(Error::usage("C-01", "bad-base-url", &message).help(&help))
}

/// Why no request can go to an address, in words that do not show it.
fn no_address(text: &str) -> Option<String> {
    match Url::parse(text.trim()) {
        Ok(url) if !matches!(url.scheme(), "http" | "https") => {
            Some("only http and https are spoken".to_owned())
        }
        Ok(url) if url.host_str().is_none_or(str::is_empty) => Some("it names no host".to_owned()),
        Ok(_) => None,
        Err(url::ParseError::RelativeUrlWithoutBase) => {
            Some("it must begin with http:// or https://".to_owned())
        }
        Err(error) => Some(error.to_string()),
    }
}

/// An address that may not be one, without what may be a key in it (C-06).
fn without_user(text: &str) -> String {
    let plain = text.split(['?', '#']).next().unwrap_or_default();
    match (plain.rsplit_once('@'), plain.split_once("://")) {
        (Some((_, place)), Some((scheme, _))) => format!("{scheme}://…@{place}"),
        (Some((_, place)), None) => format!("…@{place}"),
        (None, _) => plain.to_owned(),
    }
}

/// Caps as `calls=100,tokens=1e6,cost=2.5` (C-01).
///
/// # Errors
/// `Usage` for what is no cap, for no cap at all, and for one that is named twice.
pub fn budget(text: &str, option: &str) -> Result<Budget, Error> {
    let wrong = |what: &str| {
        let message = format!("`{option}`: {what}");
        Error::usage("C-01", "bad-budget", &message)
            .help("write caps as calls=100,tokens=1e6,cost=2.5; each is a number from 0 on")
    };
    let mut budget = Budget::default();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let no_cap = || wrong(&format!("{part:?} is no cap"));
        let (name, number) = part.split_once('=').ok_or_else(no_cap)?;
        let number: f64 = number.trim().parse().map_err(|_| no_cap())?;
        if !is_cap(number) {
            return Err(no_cap());
        }
        let (name, count) = (name.trim(), cap_count(number));
        let before = match name {
            "calls" => budget.calls.replace(count).is_some(),
            "tokens" => budget.tokens.replace(count).is_some(),
            "cost" => budget.cost.replace(number).is_some(),
            _ => return Err(no_cap()),
        };
        if before {
            return Err(wrong(&format!("`{name}` has two caps")));
        }
    }
    if budget == Budget::default() { Err(wrong(&format!("{} has no cap", shown(text)))) } else { Ok(budget) }
}

/// Whether a number can be a cap.
pub fn is_cap(number: f64) -> bool {
    number.is_finite() && number >= 0.0
}

/// A cap of calls or tokens as a count: `1e6` is 1,000,000. Counts beyond 2^53 mean "no cap"; the cast saturates.
pub fn cap_count(cap: f64) -> u64 {
    cap.floor() as u64
}

/// A number as an error shows it; one of hundreds of digits has an exponent.
pub fn number_text(number: f64) -> String {
    if number.abs() < 1e16 { number.to_string() } else { format!("{number:?}") }
}

/// Whole seconds from 1 on; parts of a second count as one.
pub fn seconds(given: Option<f64>, text: &str, option: &str) -> Result<u64, Error> {
    match given {
        Some(seconds) if seconds > 0.0 && seconds <= LONGEST => Ok(seconds.ceil() as u64),
        _ => {
            let message =
                format!("`{option}` must be a number of seconds above 0 and up to 1e9, not {}", shown(text));
            Err(Error::usage("C-01", "bad-timeout", &message).help("leave it out for no limit"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(failure: &Error) -> String {
        let first = &failure.diagnostics[0];
        format!("{} ({})", first.message, first.help)
    }

    #[test]
    fn an_address_is_one_of_the_web() {
        for right in ["http://127.0.0.1:8000/v1", " https://h/v1 ", "http://u:p@h/v1?x=1", "http://[::1]:1"] {
            assert_eq!(base_url(right, "--base-url").unwrap(), right);
        }
        for (wrong, why) in [
            ("foo", "\"foo\""),
            ("ftp://x/v1", "only http"),
            ("http://", "empty host"),
            ("http://127.0.0.1:99999/v1", "port"),
            ("127.0.0.1:8000/v1", "http://"),
            ("", "http://"),
        ] {
            let told = said(&base_url(wrong, "--base-url").unwrap_err());
            assert!(told.contains("`--base-url`") && told.contains(why), "{told}");
        }
    }

    /// C-06: what may be a key is not shown.
    #[test]
    fn a_wrong_address_is_shown_without_its_user() {
        for wrong in ["ftp://me:pass-1@h/v1", "me:pass-1@h", "foo?key=pass-1", "http://a:pass-1@h:99999/"] {
            let told = said(&base_url(wrong, "--base-url").unwrap_err());
            assert!(!told.contains("pass-1"), "{told}");
        }
    }

    #[test]
    fn each_cap_is_given_once() {
        let caps = budget(" calls=3, tokens=1e6,cost=0.5,", "--budget").unwrap();
        assert_eq!(caps, Budget { calls: Some(3), tokens: Some(1_000_000), cost: Some(0.5) });
        for wrong in ["", ",", " , ", "calls", "calls=x", "calls=-1", "cost=inf", "time=3", "calls=1,calls=2"]
        {
            assert!(budget(wrong, "--budget").is_err(), "{wrong:?}");
        }
    }
}
