//! The page's files, inside the binary (S-20).

mod bundle;

use crate::problem::Problem;
use crate::reply::{Content, Reply};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::header::{ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, ETAG, IF_NONE_MATCH, VARY};
use hyper::{HeaderMap, Method, StatusCode};
use selvedge_host::Error;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::LazyLock;

/// As they are written, by their paths, in order.
static FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/page.rs"));

/// A file as it is sent.
struct File {
    plain: Bytes,
    packed: Bytes,
    tag: String,
}

/// The script of the page.
const SCRIPT: &str = "page.js";

/// By their names, packed once. All modules are one script: to ask for forty of them takes longer than
/// all else until something is seen.
static SENT: LazyLock<BTreeMap<&str, File>> = LazyLock::new(|| {
    let files = FILES.iter().filter(|(name, _)| !name.ends_with(".js"));
    let files = files.map(|(name, bytes)| (*name, File::new(Bytes::from_static(bytes))));
    let script = bundle::script(text).unwrap_or_else(|why| format!("throw new Error({why:?});"));
    files.chain([(SCRIPT, File::new(script.into()))]).collect()
});

impl File {
    fn new(plain: Bytes) -> Self {
        let mut packer = GzEncoder::new(Vec::new(), Compression::best());
        let packed = packer.write_all(&plain).and_then(|()| packer.finish()).unwrap_or_default();
        let digest = Sha256::digest(&plain);
        let tag = digest.iter().take(12).map(|byte| format!("{byte:02x}")).collect::<String>();
        Self { plain, packed: packed.into(), tag: format!("\"{tag}\"") }
    }
}

/// Packs the files, which takes a moment.
pub(crate) fn pack() {
    LazyLock::force(&SENT);
}

/// A file of the page; every address that is none of a file is the page itself, which reads it.
pub(crate) fn file(method: &Method, path: &str, headers: &HeaderMap) -> Result<Reply, Problem> {
    if !matches!(*method, Method::GET | Method::HEAD) {
        return Err(Problem::method(path, "GET", method));
    }
    let name = path.trim_start_matches('/');
    let is_file = name.rsplit('/').next().is_some_and(|last| last.contains('.'));
    let found = SENT.get_key_value(name).or_else(|| SENT.get_key_value("index.html").filter(|_| !is_file));
    let Some((name, file)) = found else {
        return Err(Problem::new(
            StatusCode::NOT_FOUND,
            "S-03",
            "unknown-address",
            &format!("there is nothing at {path}"),
        ));
    };
    let has = |name, wanted: &str| {
        let value = headers.get(name).and_then(|value: &hyper::header::HeaderValue| value.to_str().ok());
        value.is_some_and(|value| value.contains(wanted))
    };
    let finish = |reply: Reply| {
        let reply = reply.header(ETAG, &file.tag).header(CACHE_CONTROL, "no-cache");
        reply.header(VARY, "Accept-Encoding")
    };
    if has(IF_NONE_MATCH, &file.tag) {
        return Ok(finish(Reply::of(StatusCode::NOT_MODIFIED, Content::Nothing)));
    }
    let packed = has(ACCEPT_ENCODING, "gzip") && !file.packed.is_empty();
    let bytes = if packed { &file.packed } else { &file.plain };
    let reply = Reply::of(StatusCode::OK, Content::Bytes(kind(name), bytes.clone()));
    Ok(finish(if packed { reply.header(CONTENT_ENCODING, "gzip") } else { reply }))
}

/// The page with a run inside (S-31).
pub(crate) fn sealed(run: &str) -> Result<String, Error> {
    bundle::html(text, run).map_err(|why| Error::internal(&why))
}

/// The text of a file.
fn text(name: &str) -> Option<&'static str> {
    let at = FILES.binary_search_by(|(known, _)| (*known).cmp(name)).ok()?;
    std::str::from_utf8(FILES.get(at)?.1).ok()
}

fn kind(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("ico") => "image/x-icon",
        Some("woff2") => "font/woff2",
        Some("webmanifest") => "application/manifest+json",
        _ => "text/plain; charset=utf-8",
    }
}

#[cfg(test)]
#[allow(clippy::panic, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn s20_the_page_is_small_and_has_nothing_inline() {
        let packed: usize = SENT.values().map(|file| file.packed.len()).sum();
        assert!(packed > 0 && packed <= 200_000, "{packed} bytes");
        let html = FILES.iter().filter(|(name, _)| kind(name).starts_with("text/html"));
        for (name, text) in html.map(|(name, bytes)| (name, String::from_utf8_lossy(bytes))) {
            for inline in ["<style", " style=", "onload=", "http://", "https://"] {
                assert!(!text.contains(inline), "{name}: {inline}");
            }
            assert_eq!(
                text.matches("<script").count(),
                text.matches("src=\"/page.js\"").count(),
                "{name}: a script of its own"
            );
        }
    }

    #[test]
    fn s31_all_modules_fit_into_one_script() {
        let page = sealed("{}").unwrap_or_else(|error| panic!("{error}"));
        assert!(page.contains("id=\"run-inside\">{}</script>"), "{}", page.len());
        assert!(!page.contains("\nimport "), "an import is left");
    }
}
