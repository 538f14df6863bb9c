//! JSON pointers (RFC 6901) of places in a document's text.

use super::Span;
use super::escape::resolve;

/// The JSON pointers of the values at `offsets`, which must be ascending.
///
/// The offset of a key belongs to the value of that key; one between tokens belongs to what surrounds it. The
/// text is scanned once, up to the last offset, and may be broken JSON: the pointer is then what the text in
/// front of the place says.
pub fn pointers(text: &str, offsets: &[usize]) -> Vec<String> {
    let mut scan = Scan { text, at: 0, path: Vec::new() };
    let mut found = Vec::with_capacity(offsets.len());
    let mut wanted = offsets.iter().copied().peekable();
    while wanted.peek().is_some() {
        let Some(token) = scan.next_token() else { break };
        // What stands in the gap before the token belongs to the container that is open there.
        while let Some(offset) = wanted.next_if(|offset| *offset < token.start as usize) {
            let _ = offset;
            found.push(scan.pointer(false));
        }
        let is_value = scan.enter(token);
        while let Some(offset) = wanted.next_if(|offset| *offset < token.end as usize) {
            let _ = offset;
            found.push(scan.pointer(is_value));
        }
        scan.leave(token);
    }
    while found.len() < offsets.len() {
        found.push(scan.pointer(false));
    }
    found
}

/// One open container.
enum Level {
    /// An array, and the index of the element that is being read.
    Array(usize),
    /// An object, and the literal of the key that is being read; `None` before a key.
    Object(Option<Span>),
}

struct Scan<'t> {
    text: &'t str,
    at: usize,
    path: Vec<Level>,
}

impl Scan<'_> {
    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    fn next_token(&mut self) -> Option<Span> {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.byte(self.at) {
            self.at += 1;
        }
        let start = self.at;
        match self.byte(start)? {
            b'"' => self.skip_string(),
            b'{' | b'}' | b'[' | b']' | b':' | b',' => self.at += 1,
            _ => {
                self.at += 1;
                while !matches!(
                    self.byte(self.at),
                    None | Some(b' ' | b'\n' | b'\r' | b'\t' | b'"')
                        | Some(b'{' | b'}' | b'[' | b']' | b':' | b',')
                ) {
                    self.at += 1;
                }
            }
        }
        Some(Span::new(start, self.at))
    }

    /// Moves behind a string; one that is not closed ends with its line.
    fn skip_string(&mut self) {
        self.at += 1;
        loop {
            match self.byte(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return;
                }
                Some(b'\\') => self.at += 2,
                None | Some(b'\n') => return,
                Some(_) => self.at += 1,
            }
        }
    }

    /// Notes what the token changes before its own place is asked for: a key becomes the current key, a
    /// closing bracket belongs to its container. Returns whether the token is a value or key, and so belongs
    /// to the innermost step of the path.
    fn enter(&mut self, token: Span) -> bool {
        match self.byte(token.start as usize) {
            Some(b'"') => {
                if let Some(Level::Object(key @ None)) = self.path.last_mut() {
                    *key = Some(token);
                }
                true
            }
            Some(b'}' | b']') => {
                self.path.pop();
                true
            }
            Some(b',') => false,
            _ => true,
        }
    }

    /// Notes what the token changes for what follows it.
    fn leave(&mut self, token: Span) {
        match self.byte(token.start as usize) {
            Some(b'{') => self.path.push(Level::Object(None)),
            Some(b'[') => self.path.push(Level::Array(0)),
            Some(b',') => match self.path.last_mut() {
                Some(Level::Array(index)) => *index += 1,
                Some(Level::Object(key)) => *key = None,
                None => {}
            },
            _ => {}
        }
    }

    /// The current path; `whole` includes the innermost array's index.
    fn pointer(&self, whole: bool) -> String {
        let mut pointer = String::new();
        for (depth, level) in self.path.iter().enumerate() {
            let innermost = depth + 1 == self.path.len();
            match level {
                Level::Array(_) | Level::Object(None) if innermost && !whole => {}
                Level::Array(index) => {
                    pointer.push('/');
                    pointer.push_str(&index.to_string());
                }
                Level::Object(Some(key)) => {
                    pointer.push('/');
                    let quoted = self.text.get(key.range()).unwrap_or_default();
                    let inside = quoted.strip_prefix('"').unwrap_or(quoted);
                    let inside = inside.strip_suffix('"').unwrap_or(inside);
                    pointer.push_str(&resolve(inside).replace('~', "~0").replace('/', "~1"));
                }
                Level::Object(None) => {}
            }
        }
        pointer
    }
}
