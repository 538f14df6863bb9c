//! Archives of runs from anywhere (C-14).

use selvedge_store::archive::{ArchiveError, ArchivedRun, Manifest, Writer, read};
use selvedge_store::{BlobHash, Store};
use std::collections::BTreeSet;

/// A file: it is refused in words, or it is taken, and what was taken is written and read again as it is.
pub fn archive(data: &[u8]) {
    let (store, manifest) = match taken(data) {
        Ok(taken) => taken,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let again = written(&store, &manifest);
    assert_eq!(
        again.as_deref().map(taken).and_then(Result::ok).map(|(_, manifest)| manifest),
        Some(manifest)
    );
}

fn taken(data: &[u8]) -> Result<(Store, Manifest), ArchiveError> {
    let store = Store::memory()?;
    let options = |run: &ArchivedRun| Ok::<String, ArchiveError>(run.options.to_string());
    let manifest = read(data, &store, options)?;
    Ok((store, manifest))
}

fn written(store: &Store, manifest: &Manifest) -> Option<Vec<u8>> {
    let graphs = manifest.runs.iter().filter_map(|run| run.graph.as_ref()?.parse().ok());
    let blobs: BTreeSet<BlobHash> = graphs.collect();
    let mut writer = Writer::new(store);
    for run in &manifest.runs {
        writer.add(run.clone(), |_| Ok::<(), ArchiveError>(())).ok()?;
    }
    let mut out = Vec::new();
    writer.write(&blobs, &mut out).ok()?;
    Some(out)
}
