//! `[[webhooks]]`: who is told what becomes of runs (S-09).

use super::read::Reader;
use super::settings::{Config, WebhookConfig};
use selvedge_dialects::Finding;
use selvedge_dialects::fields::{Fields, Shape};
use selvedge_dialects::json::Node;
use selvedge_store::RunStatus;
use url::Url;

pub(super) const WEBHOOK: Shape = Shape { what: "a webhook", fields: &["events", "secret_env", "url"] };

/// What may be told.
const EVENTS: [RunStatus; 4] =
    [RunStatus::Completed, RunStatus::Failed, RunStatus::Waiting, RunStatus::Cancelled];

impl Reader<'_> {
    /// Adds those of a file to those there are.
    pub(super) fn webhooks(&mut self, node: &Node<'_>, config: &mut Config) {
        let Some(items) = node.as_array() else {
            return self.wrong(node, "webhooks", "a list of tables", "write [[webhooks]] and its keys below");
        };
        let read: Vec<WebhookConfig> = items.iter().filter_map(|item| self.webhook(item)).collect();
        config.webhooks.extend(read);
    }

    fn webhook(&mut self, node: &Node<'_>) -> Option<WebhookConfig> {
        let node = &self.without_keys(node);
        let fields = Fields::open(node, &WEBHOOK, "S-09", self.diagnostics)?;
        let help = "write url = \"https://…\"";
        let address = fields.required_name("url", "S-09", help, self.diagnostics);
        let url = address.and_then(|address| {
            let url = Url::parse(&address.value).ok();
            let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
            if url.is_none() {
                let message = "`url` is no address of http or https".to_owned();
                self.diagnostics
                    .push(Finding::error("S-09", "bad-webhook", address.span, message).help(help));
            }
            url
        });
        let events = match fields.given("events") {
            Some(events) => self.events(events),
            None => Some(EVENTS.to_vec()),
        };
        let help =
            "write secret_env = \"NAME\", the variable that holds the secret that deliveries are signed with";
        fields.required("secret_env", "S-09", help, self.diagnostics)?;
        let secret_env = self.variable(&fields, "secret_env");
        Some(WebhookConfig { url: url?, events: events?, secret_env: secret_env? })
    }

    fn events(&mut self, node: &Node<'_>) -> Option<Vec<RunStatus>> {
        let names = self.texts(node, "events")?;
        let mut events = Vec::new();
        for name in &names {
            let known = EVENTS.into_iter().find(|status| status.as_str() == &**name);
            let Some(event) = known else {
                let message = format!("no webhook is told of \"{}\"", crate::text::one_line(name, 40));
                let help = "events are completed, failed, waiting and cancelled";
                self.diagnostics.push(Finding::error("S-09", "bad-event", node.span, message).help(help));
                return None;
            };
            if !events.contains(&event) {
                events.push(event);
            }
        }
        Some(events)
    }
}
