//! Messages in what a program writes to its stdout. The protocol has one on each line; here a message may also take several
//! lines, stand in a list, or be glued to a line of a log.

use super::message::{Message, Reader, id_of};
use serde::de::IgnoredAny;

/// In how many places of a line of a log a message is looked for.
const PLACES: usize = 64;
/// Up to so many bytes what a message may become is looked at line by line, then each time it has doubled.
const SMALL: usize = 4 << 10;

/// Reads lines.
pub(super) struct Framing {
    reader: Reader,
    /// The lines of a message that has not come to its end.
    begun: Vec<u8>,
    /// How far brackets are open in it.
    open: Brackets,
    /// How long it was when it was last looked at.
    looked: usize,
}

/// What a line brought.
#[derive(Default)]
pub(super) struct Brought {
    /// Messages, in order; errors for calls whose answers can't be read among them.
    pub(super) messages: Vec<Message>,
    /// What is nothing of the protocol.
    pub(super) noise: Vec<u8>,
}

#[derive(Clone, Copy, Default)]
struct Brackets {
    depth: usize,
    in_text: bool,
    escaped: bool,
}

impl Framing {
    pub(super) fn new(reader: Reader) -> Self {
        Self { reader, begun: Vec::new(), open: Brackets::default(), looked: 0 }
    }

    /// Takes a line, without white space around it.
    pub(super) fn line(&mut self, line: &[u8]) -> Brought {
        let mut brought = Brought::default();
        // One of a list has a comma behind it.
        let messages = self.reader.read(line.strip_suffix(b",").unwrap_or(line));
        if !messages.is_empty() {
            // Whatever had begun was none.
            self.give_up(&mut brought);
            brought.messages.extend(messages.into_iter().map(|message| self.reader.addressed(message)));
        } else if self.begun.is_empty() {
            self.alone(line, &mut brought);
        } else {
            self.further(line, &mut brought);
        }
        brought
    }

    /// A line behind others of a message.
    fn further(&mut self, line: &[u8], brought: &mut Brought) {
        let before = self.begun.len();
        self.begun.push(b'\n');
        self.begun.extend_from_slice(line);
        self.open.over(line);
        if self.open.depth == 0 {
            let whole = std::mem::take(&mut self.begun);
            let messages = self.reader.read(&whole);
            match messages.is_empty() {
                false => brought.messages = messages,
                true => self.lost(&whole, brought),
            }
        } else if self.begun.len() > self.reader.longest() {
            self.give_up(brought);
        } else if self.begun.len() < SMALL || self.begun.len() >= 2 * self.looked {
            self.looked = self.begun.len();
            if self.open.in_text || !is_beginning(&self.begun) {
                self.begun.truncate(before);
                self.give_up(brought);
                self.alone(line, brought);
            }
        }
    }

    /// A line by itself that is no message: there may be one in it, or it may be the beginning of one.
    fn alone(&mut self, line: &[u8], brought: &mut Brought) {
        let mut rest = line;
        let mut noise = Vec::new();
        for _ in 0..PLACES {
            let Some(at) = memchr::memchr2(b'{', b'[', rest) else { break };
            let (before, place) = rest.split_at(at);
            noise.extend_from_slice(before);
            let mut values = serde_json::Deserializer::from_slice(place).into_iter::<IgnoredAny>();
            let first = values.next();
            let (value, after) = place.split_at_checked(values.byte_offset()).unwrap_or((place, &[]));
            match first {
                Some(Ok(IgnoredAny)) => {
                    let read = self.reader.read(value);
                    match read.is_empty() {
                        true => self.lost(value, brought),
                        // A log may show what was asked: only answers are taken from it.
                        false => {
                            brought.messages.extend(read.into_iter().filter(|read| id_of(read).is_some()))
                        }
                    }
                    rest = after;
                }
                Some(Err(error)) if error.is_eof() && self.begins(place, noise.is_empty()) => {
                    rest = &[];
                    break;
                }
                _ => {
                    let (bracket, after) = place.split_at_checked(1).unwrap_or((place, &[]));
                    noise.extend_from_slice(bracket);
                    rest = after;
                }
            }
        }
        noise.extend_from_slice(rest);
        self.lost(&noise, brought);
    }

    /// Takes the end of a line as the beginning of a message, if it can be one. Of what stands behind other words only what
    /// says so is.
    fn begins(&mut self, text: &[u8], alone: bool) -> bool {
        let mut open = Brackets::default();
        open.over(text);
        let may_be = !open.in_text && (alone || memchr::memmem::find(text, b"\"jsonrpc\"").is_some());
        if may_be {
            self.begun = text.to_vec();
            (self.open, self.looked) = (open, text.len());
        }
        may_be
    }

    fn give_up(&mut self, brought: &mut Brought) {
        let begun = std::mem::take(&mut self.begun);
        brought.messages.extend(self.reader.unfinished(&begun));
        brought.noise.extend_from_slice(&begun);
    }

    fn lost(&self, text: &[u8], brought: &mut Brought) {
        brought.messages.extend(self.reader.unreadable(text));
        brought.noise.extend_from_slice(text);
    }
}

/// Whether JSON may begin so.
fn is_beginning(text: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(text).is_err_and(|error| error.is_eof())
}

impl Brackets {
    fn over(&mut self, text: &[u8]) {
        for byte in text {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_text => self.escaped = true,
                b'"' => self.in_text = !self.in_text,
                b'{' | b'[' if !self.in_text => self.depth += 1,
                b'}' | b']' if !self.in_text => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::{JsonRpcMessage, RequestId};

    /// The ids that are answered by these lines, and what of them is noise.
    fn of(lines: &[&str]) -> (Vec<String>, String) {
        let reader = Reader::new(128, 1 << 20, &[]);
        (0..10).for_each(|id| reader.asked(&RequestId::Number(id)));
        let mut framing = Framing::new(reader);
        let (mut ids, mut noise) = (Vec::new(), Vec::new());
        for line in lines {
            let brought = framing.line(line.trim().as_bytes());
            ids.extend(brought.messages.iter().map(|message| match message {
                JsonRpcMessage::Response(response) => response.id.to_string(),
                JsonRpcMessage::Error(error) => {
                    format!("{} failed", error.id.as_ref().map(ToString::to_string).unwrap_or_default())
                }
                other => format!("{other:?}"),
            }));
            noise.extend(brought.noise);
        }
        (ids, String::from_utf8(noise).unwrap())
    }

    const ONE: &str = r#"{"jsonrpc": "2.0", "id": 1, "result": {"content": []}}"#;
    const TWO: &str = r#"{"jsonrpc": "2.0", "id": 2, "result": {"content": []}}"#;

    #[test]
    fn messages_in_any_layout() {
        let both = |ids: &[&str]| ids.iter().map(ToString::to_string).collect::<Vec<_>>();
        let list = format!("[{ONE}, {TWO}]");
        let pretty = "{\n \"jsonrpc\": \"2.0\",\n \"id\": 1,\n \"result\": {\n  \"content\": []\n }\n}";
        let pretty: Vec<&str> = pretty.lines().collect();
        assert_eq!(of(&[ONE, TWO]).0, both(&["1", "2"]));
        assert_eq!(of(&[&list]).0, both(&["1", "2"]));
        assert_eq!(of(&pretty).0, both(&["1"]));
        assert_eq!(of(&["[", &format!("{ONE},"), TWO, "]"]).0, both(&["1", "2"]));
        assert_eq!(of(&[&format!("{ONE}{TWO}")]).0, both(&["1", "2"]));
        for (before, after) in
            [("INFO [main] {x} ", ""), ("", "done"), ("loading {", "} done"), ("a: ", " b")]
        {
            let (ids, noise) = of(&[&format!("{before}{ONE}{after}"), TWO]);
            assert_eq!(ids, both(&["1", "2"]), "{before}…{after}");
            assert_eq!(noise.replace(' ', ""), format!("{before}{after}").replace(' ', ""));
        }
        // A log with brackets holds nothing up.
        assert_eq!(of(&["config {", ONE]).0, both(&["1"]));
        assert_eq!(of(&["{", "port: 80", &format!("x {ONE}")]).0, both(&["1"]));
        assert_eq!(of(&["{", "\"level\": \"info\"", "}", ONE]).0, both(&["1"]));
    }

    /// What a log says that was asked is asked by nobody.
    #[test]
    fn only_answers_are_taken_from_logs() {
        for line in [
            r#"got {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {}}"#,
            r#"{"level": "info", "id": 1, "result": 3}"#,
            "Welcome {to} [the] server",
        ] {
            assert!(of(&[line]).0.is_empty(), "{line}");
        }
    }

    /// What can't be read ends the call that it names, else all that wait.
    #[test]
    fn what_is_lost_is_told() {
        for (lines, failed) in [
            (
                vec![
                    r#"{"jsonrpc": "2.0", "id": 3, "result": {"content": [{"type": "text", "text": "a"#,
                    "b\"}]}}",
                ],
                1,
            ),
            (vec![r#"{"jsonrpc": "2.0", "id": 3, "result": {"x": NaN}}"#], 1),
            (vec!["{", "\"jsonrpc\": \"2.0\",", "\"id\": 3,", "\"result\": {'x': 1}", "}"], 1),
            (vec![r#"{"jsonrpc": "2.0", "result": {"x": NaN}}"#], 10),
        ] {
            let (ids, _) = of(&lines);
            assert_eq!(ids.len(), failed, "{lines:?}: {ids:?}");
            assert!(ids.contains(&"3 failed".to_owned()), "{ids:?}");
        }
    }

    #[test]
    fn long_messages_are_read_once() {
        let lines: Vec<String> = (0..60_000).map(|n| format!("{n},")).collect();
        let mut all =
            vec![r#"{"jsonrpc": "2.0", "id": 1, "result": {"content": [], "structuredContent": {"a": ["#];
        all.extend(lines.iter().map(String::as_str));
        all.push("0]}}}");
        let began = std::time::Instant::now();
        assert_eq!(of(&all).0, ["1"]);
        assert!(began.elapsed() < std::time::Duration::from_secs(20));
    }
}
