//! Which certificates are trusted, for people who look at what works here.

/// How many root certificates are trusted, and what was wrong with some; `None` where the system decides by itself.
///
/// # Errors
/// What was wrong, when there is none: no outside endpoint can be reached then.
#[cfg(all(unix, not(target_os = "android"), not(target_vendor = "apple")))]
pub fn roots() -> Result<Option<(usize, Vec<String>)>, String> {
    let found = rustls_native_certs::load_native_certs();
    let wrong: Vec<String> = found.errors.iter().map(ToString::to_string).collect();
    match found.certs.len() {
        0 if wrong.is_empty() => Err("there are none".to_owned()),
        0 => Err(wrong.join("; ")),
        count => Ok(Some((count, wrong))),
    }
}

/// How many root certificates are trusted: the system decides by itself.
///
/// # Errors
/// None here.
#[cfg(not(all(unix, not(target_os = "android"), not(target_vendor = "apple"))))]
pub fn roots() -> Result<Option<(usize, Vec<String>)>, String> {
    Ok(None)
}
