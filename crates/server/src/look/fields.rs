//! JSON that is written field by field, with no value made for each part of it: what is large, and looked at often (S-30).

use serde::Serialize;

/// What says nothing, as JSON.
const NOTHING: [&[u8]; 5] = [b"null", b"false", b"\"\"", b"[]", b"{}"];

/// The fields of an object that is being written.
pub(crate) struct Fields<'w> {
    text: &'w mut Vec<u8>,
    /// Whether it is only what a picture shows: nothing that says nothing, and no [`Self::more`].
    brief: bool,
    /// Whether what is in it is.
    within: bool,
    first: bool,
}

/// An object as JSON; what is in it may be brief, and it has all of its own fields.
pub(crate) fn object(brief: bool, fields: impl FnOnce(&mut Fields<'_>)) -> String {
    let mut text = Vec::new();
    text.push(b'{');
    fields(&mut Fields { text: &mut text, brief: false, within: brief, first: true });
    text.push(b'}');
    String::from_utf8(text).unwrap_or_default()
}

fn write(text: &mut Vec<u8>, brief: bool, fields: impl FnOnce(&mut Fields<'_>)) {
    text.push(b'{');
    fields(&mut Fields { text, brief, within: brief, first: true });
    text.push(b'}');
}

impl Fields<'_> {
    /// Whether it is only what a picture shows.
    pub(crate) fn brief(&self) -> bool {
        self.brief
    }

    /// A field.
    pub(crate) fn put(&mut self, name: &str, value: impl Serialize) {
        // What is shown here has no key that is no text, and nothing else that could not be JSON.
        self.with(name, |text, _| serde_json::to_writer(text, &value).unwrap_or_default());
    }

    /// A number, of which 0 says nothing.
    pub(crate) fn count(&mut self, name: &str, count: u64) {
        if count > 0 || !self.brief {
            self.put(name, count);
        }
    }

    /// What no picture shows.
    pub(crate) fn more(&mut self, name: &str, value: impl Serialize) {
        if !self.brief {
            self.put(name, value);
        }
    }

    /// An object, or null.
    pub(crate) fn object<T>(&mut self, name: &str, of: Option<T>, fields: impl FnOnce(&mut Fields<'_>, T)) {
        self.with(name, |text, brief| match of {
            Some(of) => write(text, brief, |inner| fields(inner, of)),
            None => text.extend(b"null"),
        });
    }

    /// A list of objects.
    pub(crate) fn list<T>(
        &mut self,
        name: &str,
        of: impl Iterator<Item = T>,
        fields: impl Fn(&mut Fields<'_>, T),
    ) {
        self.with(name, |text, brief| {
            text.push(b'[');
            for (at, one) in of.enumerate() {
                if at > 0 {
                    text.push(b',');
                }
                write(text, brief, |inner| fields(inner, one));
            }
            text.push(b']');
        });
    }

    fn with(&mut self, name: &str, value: impl FnOnce(&mut Vec<u8>, bool)) {
        let before = self.text.len();
        if !self.first {
            self.text.push(b',');
        }
        self.text.push(b'"');
        self.text.extend(name.as_bytes());
        self.text.extend(b"\":");
        let begins = self.text.len();
        value(self.text, self.within);
        let said = self.text.get(begins..).unwrap_or_default();
        if self.brief && NOTHING.contains(&said) {
            self.text.truncate(before);
        } else {
            self.first = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn what_says_nothing_is_left_out_of_what_is_brief() {
        let fields = |all: &mut Fields<'_>| {
            all.put("none", None::<u8>);
            all.put("text", "a\"\u{1b}");
            all.count("zero", 0);
            all.put("place", 0);
            all.more("more", 1);
            all.object("inner", Some(2), |inner, n| inner.put("n", n));
            all.object("nobody", None::<u8>, |inner, n| inner.put("n", n));
            all.list("list", [1, 2].into_iter(), |one, n| one.count("n", n - 1));
            all.list("empty", std::iter::empty::<u8>(), |one, n| one.put("n", n));
        };
        let read = |brief| {
            let json = object(brief, |all| all.object("all", Some(()), |all, ()| fields(all)));
            serde_json::from_str::<Value>(&json).unwrap()["all"].clone()
        };
        let whole = json!({"none": null, "text": "a\"\u{1b}", "zero": 0, "place": 0, "more": 1, "inner": {"n": 2}, "nobody": null,
                           "list": [{"n": 0}, {"n": 1}], "empty": []});
        assert_eq!(read(false), whole);
        assert_eq!(object(true, |all| all.put("none", None::<u8>)), r#"{"none":null}"#);
        assert_eq!(
            read(true),
            json!({"text": "a\"\u{1b}", "place": 0, "inner": {"n": 2}, "list": [{}, {"n": 1}]})
        );
    }
}
