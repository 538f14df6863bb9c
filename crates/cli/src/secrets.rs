//! Keys never reach the journal, whoever says them (C-06): what models and tools answer is cleaned on its way in.

use selvedge_adapters::http::Secret;
use selvedge_engine::{Failure, ModelReply, ModelRequest, ToolRequest};
use selvedge_runtime::{CallContext, Model, Pending, Tools};
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;

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

fn value(json: &mut Value, secrets: &[Secret]) {
    match json {
        Value::String(said) => text(said, secrets),
        Value::Array(items) => items.iter_mut().for_each(|item| value(item, secrets)),
        Value::Object(fields) => fields.values_mut().for_each(|field| value(field, secrets)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
