//! Keys never reach the journal, whoever says them (C-06): what models and tools answer is cleaned on its way in.

use crate::config::Config;
use crate::environment::variable;
use selvedge_adapters::http::Secret;
use selvedge_adapters::models::Provider;
use selvedge_engine::{Failure, ModelReply, ModelRequest, ToolRequest};
use selvedge_runtime::{CallContext, Model, Pending, Tools};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;
use url::Url;

/// Every key that this process can see, whether or not a model of this run uses it: a tool may come upon any of
/// them (C-06). Passwords of proxies are among them.
pub(crate) fn known(config: &Config) -> Vec<Secret> {
    let configured = config.models.values().filter_map(|model| model.api_key_env.as_deref());
    let own = Provider::ALL.iter().flat_map(|provider| provider.key_variables()).copied();
    let names: BTreeSet<&str> = ["SELVEDGE_API_KEY"].into_iter().chain(own).chain(configured).collect();
    let keys = names.into_iter().filter_map(|name| Some(Secret::new(&variable(name)?)));
    keys.chain(proxies().into_iter().filter_map(|(_, url)| Some(Secret::new(url.password()?)))).collect()
}

/// The proxies that requests to other machines go through: the variable and the address, credentials included.
pub(crate) fn proxies() -> Vec<(&'static str, Url)> {
    const NAMES: [&str; 6] =
        ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];
    let address = |text: &str| Url::parse(text).or_else(|_| Url::parse(&format!("http://{text}"))).ok();
    NAMES.iter().filter_map(|name| Some((*name, address(&variable(name)?)?))).collect()
}

/// A port behind which no key comes back.
struct Cleaned<P: ?Sized> {
    secrets: Arc<[Secret]>,
    port: Arc<P>,
}

/// The same models, without the keys in their answers.
pub(crate) fn clean_model(model: Arc<dyn Model>, secrets: &[Secret]) -> Arc<dyn Model> {
    if secrets.is_empty() { model } else { Arc::new(Cleaned { secrets: secrets.into(), port: model }) }
}

/// The same tools, without the keys in their outputs.
pub(crate) fn clean_tools(tools: Arc<dyn Tools>, secrets: &[Secret]) -> Arc<dyn Tools> {
    if secrets.is_empty() { tools } else { Arc::new(Cleaned { secrets: secrets.into(), port: tools }) }
}

impl Model for Cleaned<dyn Model> {
    fn call(&self, request: ModelRequest, context: CallContext) -> Pending<ModelReply> {
        let (reply, secrets) = (self.port.call(request, context), Arc::clone(&self.secrets));
        Box::pin(async move {
            let mut reply = reply.await.map_err(|failure| failed(failure, &secrets))?;
            text(&mut reply.text, &secrets);
            for call in &mut reply.calls {
                value(&mut call.arguments, &secrets);
                label(&mut call.name, &secrets);
                label(&mut call.id, &secrets);
            }
            Ok(reply)
        })
    }

    fn recorded(&self, request: &ModelRequest, run: &str) {
        self.port.recorded(request, run);
    }
}

impl Tools for Cleaned<dyn Tools> {
    fn call(&self, request: ToolRequest, context: CallContext) -> Pending<Value> {
        let (output, secrets) = (self.port.call(request, context), Arc::clone(&self.secrets));
        Box::pin(async move {
            let mut output = output.await.map_err(|failure| failed(failure, &secrets))?;
            value(&mut output, &secrets);
            Ok(output)
        })
    }
}

fn failed(mut failure: Failure, secrets: &[Secret]) -> Failure {
    text(&mut failure.fault.message, secrets);
    if let Some(cause) = &mut failure.fault.cause {
        value(cause, secrets);
    }
    failure
}

fn text(text: &mut String, secrets: &[Secret]) {
    for secret in secrets {
        if let Cow::Owned(clean) = secret.redact(text) {
            *text = clean;
        }
    }
}

fn label(label: &mut Arc<str>, secrets: &[Secret]) {
    for secret in secrets {
        if let Cow::Owned(clean) = secret.redact(label) {
            *label = clean.into();
        }
    }
}

fn value(json: &mut Value, secrets: &[Secret]) {
    match json {
        Value::String(said) => text(said, secrets),
        Value::Array(items) => items.iter_mut().for_each(|item| value(item, secrets)),
        Value::Object(fields) => {
            fields.values_mut().for_each(|field| value(field, secrets));
            let told =
                |key: &String| secrets.iter().any(|secret| matches!(secret.redact(key), Cow::Owned(_)));
            if fields.keys().any(told) {
                let clean = std::mem::take(fields).into_iter().map(|(mut key, field)| {
                    text(&mut key, secrets);
                    (key, field)
                });
                *fields = clean.collect();
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// C-06: wherever in an output a key stands, names of fields included; what else there is stays in its order.
    #[test]
    fn keys_are_removed_from_values_and_names() {
        let secrets = [Secret::new("sk-0123456789")];
        let mut said = json!({"z": 1, "x sk-0123456789": ["sk-0123456789", {"sk-0123456789": null}], "a": 2});
        value(&mut said, &secrets);
        let clean = r#"{"z":1,"x [redacted]":["[redacted]",{"[redacted]":null}],"a":2}"#;
        assert_eq!(said.to_string(), clean);
        let mut name: Arc<str> = "call_sk-0123456789".into();
        label(&mut name, &secrets);
        assert_eq!(&*name, "call_[redacted]");
    }
}
