//! Variables in the texts of a server's table, and keys among them (C-06).

use super::super::hidden;
use super::Form;
use crate::environment::Environment;
use selvedge_http::Secret;
use url::form_urlencoded;

/// The texts of a server's table, variables in place.
pub(super) struct Words<'a> {
    environment: &'a Environment,
    pub(super) form: Form,
    pub(super) unset: Vec<String>,
    pub(super) secrets: Vec<Secret>,
    /// What came out of the environment into `env` and `headers`.
    pub(super) handed_on: Vec<Secret>,
}

impl<'a> Words<'a> {
    pub(super) fn new(environment: &'a Environment, form: Form) -> Self {
        Self { environment, form, unset: Vec::new(), secrets: Vec::new(), handed_on: Vec::new() }
    }

    /// `${NAME}` and `${NAME:-DEFAULT}` as other programs that read such files have them. A `$` by itself is one.
    pub(super) fn expanded(&mut self, text: &str) -> String {
        self.expand(text, false)
    }

    /// The same of a value of `env` or `headers`: what is handed on there out of the environment is nobody else's.
    pub(super) fn value(&mut self, text: &str) -> String {
        self.expand(text, true)
    }

    /// What is to be redacted although nothing else says that it is a key, among the secrets from here on.
    pub(super) fn given(&mut self) -> Vec<Secret> {
        let given: Vec<Secret> = std::mem::take(&mut self.handed_on)
            .into_iter()
            .filter(|given| !self.secrets.contains(given))
            .collect();
        self.secrets.extend(given.iter().cloned());
        given
    }

    fn expand(&mut self, text: &str, handed_on: bool) -> String {
        let mut expanded = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once("${") {
            expanded.push_str(before);
            let inner = behind.split_once('}').map(|(inner, after)| (inner.split_once(":-"), inner, after));
            let Some((default, inner, after)) = inner else {
                expanded.push_str("${");
                rest = behind;
                continue;
            };
            let name = default.map_or(inner, |(name, _)| name);
            // As editors write it.
            let name = name.strip_prefix("env:").unwrap_or(name);
            match (self.environment.variable(name), default) {
                (Some(value), _) => {
                    if hidden::may_be_secret(name) {
                        self.secret(&value);
                    } else if handed_on && !hidden::tells_nothing(name, &value) {
                        self.handed_on.push(Secret::new(&value));
                    }
                    expanded.push_str(&value);
                }
                (None, Some((_, default))) => expanded.push_str(default),
                (None, None) if hidden::names_variable(self.environment, name) => {
                    self.unset.push(name.to_owned())
                }
                // It may be the key itself.
                (None, None) => self.unset.push("${…} (what stands there is no name of one)".to_owned()),
            }
            rest = after;
        }
        expanded.push_str(rest);
        self.secrets_of_addresses(&expanded);
        expanded
    }

    /// A key, and what follows its scheme in a header: `Bearer KEY`.
    pub(super) fn secret(&mut self, value: &str) {
        for value in [Some(value), value.rsplit_once(' ').map(|(_, last)| last)].into_iter().flatten() {
            let secret = Secret::new(value);
            if !value.trim().is_empty() && !self.secrets.contains(&secret) {
                self.secrets.push(secret);
            }
        }
    }

    /// Keys in the addresses of a text, as they stand there and as they are meant: `%40` is an `@`.
    fn secrets_of_addresses(&mut self, text: &str) {
        for range in hidden::in_addresses(text) {
            let Some(key) = text.get(range) else { continue };
            self.secret(key);
            let meant = form_urlencoded::parse(key.replace('+', "%2B").replace('&', "%26").as_bytes())
                .map(
                    |(name, value)| {
                        if value.is_empty() { name.into_owned() } else { format!("{name}={value}") }
                    },
                )
                .collect::<String>();
            self.secret(&meant);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C-06: a key in an address is known as it stands there and as it is meant, and with the user it belongs to.
    #[test]
    fn keys_of_addresses_are_known() {
        let environment = Environment::default();
        let mut words = Words::new(&environment, Form::Toml);
        let text = "postgres://me:p%40ss+word%261@h/db?sslkey=k%3D0123456#x";
        assert_eq!(words.expanded(text), text);
        let known: Vec<&str> = words.secrets.iter().map(Secret::expose).collect();
        for key in ["me:p%40ss+word%261", "p%40ss+word%261", "p@ss+word&1", "k%3D0123456", "k=0123456"] {
            assert!(known.contains(&key), "{key}: {known:?}");
        }
        let mut words = Words::new(&environment, Form::Toml);
        words.expanded("https://example.com:8080/a?page=2 -p 80:80 user@example.com");
        assert!(words.secrets.is_empty(), "{:?}", words.secrets.len());
    }
}
