//! The model over HTTP.

use crate::Result;
use selvedge_http::Http;
use selvedge_models::{Endpoint, Provider, ProviderConfig};
use selvedge_runtime::Model;
use std::sync::Arc;

/// The model `mock` with `query` behind its name, at `BENCH_BASE_URL`. To be called within the runtime that drives it.
pub(crate) fn model(query: &str) -> Result<Arc<dyn Model>> {
    let base = std::env::var("BENCH_BASE_URL").unwrap_or_else(|_| "http://127.0.0.1:18080/v1".into());
    Ok(Arc::new(Endpoint::new(
        ProviderConfig::new(Provider::OpenAi, format!("mock{query}")).at(base),
        &Http::new(|_| None),
    )?))
}
