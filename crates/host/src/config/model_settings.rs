//! Settings of the calls of a model, in `[models.NAME]` (P-28).

use super::read::Reader;
use selvedge_dialects::Finding;
use selvedge_dialects::fields::Fields;
use selvedge_dialects::json::{Kind, Node};
use selvedge_dialects::settings::RESERVED;
use selvedge_engine::ModelSettings;
use serde_json::{Map, Value};

impl Reader<'_> {
    /// The settings among the fields of a model.
    pub(super) fn model_settings(&mut self, fields: &Fields<'_, '_>) -> ModelSettings {
        let number = |field, reader: &mut Self| {
            fields.number(field, "P-28", reader.diagnostics).map(|number| number.value)
        };
        ModelSettings {
            temperature: number("temperature", self),
            top_p: number("top_p", self),
            max_tokens: self.count(fields, "max_tokens", "P-28"),
            seed: fields.given("seed").and_then(|node| self.seed(node)),
            stop: fields.given("stop").map(|node| self.stop(node)).unwrap_or_default(),
            body: fields.given("extra").map(|node| self.extra(node)).unwrap_or_default(),
            ..ModelSettings::default()
        }
    }

    fn seed(&mut self, node: &Node<'_>) -> Option<i64> {
        let seed = node.to_value().as_i64();
        if seed.is_none() {
            self.wrong(node, "seed", "an integer of at most 64 bits", "write seed = 7");
        }
        seed
    }

    /// A text or a list of texts.
    fn stop(&mut self, node: &Node<'_>) -> Vec<String> {
        if let Some(text) = node.as_str() {
            return vec![text.to_owned()];
        }
        let texts = self.texts(node, "stop").unwrap_or_default();
        texts.iter().map(ToString::to_string).collect()
    }

    /// Fields of the request's body, without keys and those that are Selvedge's own.
    fn extra(&mut self, node: &Node<'_>) -> Map<String, Value> {
        if node.as_object().is_none() {
            self.wrong(node, "extra", "a table", "write extra = { name = value }");
        }
        let node = self.without_keys_below(node);
        for member in node.as_object().unwrap_or_default() {
            if RESERVED.contains(&&*member.key) {
                let message = format!("`{}` in `extra` is written by Selvedge itself", member.key);
                let finding = Finding::error("P-28", "reserved-field", member.key_span, message);
                self.diagnostics.push(finding.help("remove it"));
            }
        }
        match node.to_value() {
            Value::Object(fields) => fields,
            _ => Map::new(),
        }
    }

    /// A value without the keys that stand in it, each of which is an error (C-06).
    fn without_keys_below<'n>(&mut self, node: &Node<'n>) -> Node<'n> {
        let mut node = self.without_keys(node);
        match &mut node.kind {
            Kind::Object(members) => {
                members.iter_mut().for_each(|member| member.value = self.without_keys_below(&member.value));
            }
            Kind::Array(elements) => {
                elements.iter_mut().for_each(|element| *element = self.without_keys_below(element));
            }
            _ => {}
        }
        node
    }
}
