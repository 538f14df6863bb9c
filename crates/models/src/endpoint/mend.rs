//! Halves of characters in a whole reply: see [`surrogates`].

use selvedge_engine::ModelReply;
use selvedge_http::surrogates;
use std::sync::Arc;

/// Makes characters of the halves in a reply; counts those that could not be mended.
pub(super) fn mend(reply: &mut ModelReply) {
    let mut lost = surrogates::text(&mut reply.text);
    if let Some(stop) = &mut reply.stop {
        lost += surrogates::text(stop);
    }
    for call in &mut reply.calls {
        for name in [&mut call.id, &mut call.name] {
            lost += shared(name);
        }
        lost += surrogates::value(&mut call.arguments);
    }
    reply.unmended += lost;
}

fn shared(text: &mut Arc<str>) -> u32 {
    match surrogates::settled(text) {
        Some((clean, lost)) => {
            *text = clean.into();
            lost
        }
        None => 0,
    }
}
