//! Why replies stop, in the words of all providers.

use selvedge_engine::Cut;

/// Why a reply with this stop reason is not whole, in the words of all providers; `None`: it is (E-27).
pub(crate) fn cut_by(stop: &str) -> Option<Cut> {
    match stop {
        "length"
        | "max_tokens"
        | "max_output_tokens"
        | "model_context_window_exceeded"
        | "model_length"
        | "MAX_TOKENS"
        | "incomplete" => Some(Cut::Limit),
        "content_filter" | "refusal" => Some(Cut::Withheld),
        stop if is_withheld(stop) => Some(Cut::Withheld),
        _ => None,
    }
}

/// Whether a reply that stopped with this reason was held back, or the rest of it.
pub(crate) fn is_withheld(reason: &str) -> bool {
    let names = [
        "SAFETY",
        "RECITATION",
        "LANGUAGE",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "MODEL_ARMOR",
        "MISSING_THOUGHT_SIGNATURE",
    ];
    names.contains(&reason) || reason.starts_with("IMAGE_")
}
