//! What is told while a tool is made ready.

/// Where lines about slow preparations go (fetching uv, building an environment): for people, on stderr.
pub type Progress = std::sync::Arc<dyn Fn(&str) + Send + Sync>;
