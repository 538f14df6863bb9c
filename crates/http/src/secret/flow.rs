//! A text that comes in pieces: a key may begin in one and end in another.

use super::Secrets;

/// Takes secrets out of a text piece by piece. What could be the beginning of one is held back until it is known not to be,
/// so that no part of it is ever told.
#[derive(Debug)]
pub struct Flow {
    secrets: Secrets,
    held: String,
}

impl Flow {
    /// A text from its beginning.
    pub fn new(secrets: &Secrets) -> Self {
        Self { secrets: secrets.clone(), held: String::new() }
    }

    /// What can be told of the text so far, and was not yet.
    pub fn more(&mut self, piece: String) -> String {
        if self.secrets.is_empty() {
            return piece;
        }
        let mut all = piece;
        if !self.held.is_empty() {
            all = std::mem::take(&mut self.held) + &all;
        }
        let forms = &self.secrets.forms;
        let spans = forms.spans(&all);
        // Within a secret that is there nothing begins.
        let free = |at: &usize| !spans.iter().any(|span| span.start < *at && *at < span.end);
        let from = forms.beginnings(&all).into_iter().filter(free).find(|at| all.is_char_boundary(*at));
        if let Some(from) = from {
            self.held = all.split_off(from);
        }
        self.secrets.redact(&all).into_owned()
    }

    /// What was held back, at the end of the text.
    pub fn rest(&mut self) -> String {
        let held = std::mem::take(&mut self.held);
        self.secrets.redact(&held).into_owned()
    }
}
