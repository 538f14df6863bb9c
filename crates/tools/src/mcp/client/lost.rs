//! What a refusal is about: the call, or the session that it was made in.

use rmcp::model::ErrorData;

/// The code of servers made with the TypeScript SDK for a session that they do not know.
const UNKNOWN: i32 = -32001;

/// Words about a session, as the SDKs and what was made after their examples have them.
const WORDS: [&str; 10] = [
    "session id",
    "session-id",
    "session not found",
    "session expired",
    "session has expired",
    "session has been terminated",
    "session terminated",
    "invalid session",
    "unknown session",
    "server not initialized",
];

/// Whom a refusal means.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Meant {
    /// The session is no more: whoever refuses has not looked at what was asked.
    Session,
    /// The call.
    Call,
    /// It says nothing of a session, and does not name the call.
    Nobody,
}

/// Whom an answer with this status means, to what was asked in a session. The specification wants a 404 where the session
/// is no more, and nothing of what is in it; servers made after the examples of the SDKs answer 400. `said` is the error
/// of the protocol in it, and whether it names the call.
///
/// A 404 may as well be about a method or a tool: what is repeated for it in a new session might be done twice.
pub(super) fn meant(status: u16, said: Option<(&ErrorData, bool)>) -> Meant {
    let Some((error, own)) = said else {
        return if status == 404 { Meant::Session } else { Meant::Call };
    };
    let words = error.message.to_ascii_lowercase();
    let known = WORDS.iter().any(|known| words.contains(known));
    match (status, own) {
        (400 | 404, _) if known => Meant::Session,
        (404, false) if error.code.0 == UNKNOWN || words.contains("session") => Meant::Session,
        // A method that nobody knows is one that somebody looked for.
        (404, false) if !matches!(error.code.0, -32601 | -32602) => Meant::Nobody,
        _ => Meant::Call,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::ErrorCode;

    #[test]
    fn what_refusals_are_about() {
        for (status, code, words, own, whom) in [
            // The TypeScript, Python and C# SDKs, FastMCP, and servers after their examples.
            (404, -32001, "Session not found", false, Meant::Session),
            (404, -32600, "Not Found: Session has been terminated", false, Meant::Session),
            (404, -32000, "Session does not exist", false, Meant::Session),
            (404, -32001, "gone", false, Meant::Session),
            (404, -32603, "Invalid session", true, Meant::Session),
            (400, -32000, "Bad Request: No valid session ID provided", false, Meant::Session),
            (400, -32000, "Bad Request: the lock is held", false, Meant::Call),
            (404, -32601, "Method not found", false, Meant::Call),
            (404, -32602, "no tool `echo`", true, Meant::Call),
            (404, -32001, "no such row", true, Meant::Call),
            (404, -32603, "the browser's session 7 is not there", true, Meant::Call),
            (404, -32600, "Not Found", false, Meant::Nobody),
            (422, -32000, "Session not found", false, Meant::Call),
        ] {
            let error = ErrorData::new(ErrorCode(code), words, None);
            assert_eq!(meant(status, Some((&error, own))), whom, "{status} {code} {words}");
        }
        assert_eq!((meant(404, None), meant(400, None)), (Meant::Session, Meant::Call));
    }
}
