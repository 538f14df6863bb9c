//! Where a coder's file becomes a tool, and where recorded calls are repeated with it.

use crate::error::Error;
use crate::library::replay::{Against, Repeating, Verdict};
use futures_util::future::BoxFuture;
use selvedge_engine::ToolDef;
use selvedge_engine::library::Sample;
use selvedge_store::Store;
use selvedge_tools::library::LibrarySource;
use selvedge_tools::{Catalogue, Drafted, NotDrafted, ToolError};
use std::path::PathBuf;
use std::sync::Arc;

/// Who makes tools of files: a run's catalogue, in its sandbox, or in tests a world in which a file is what they say.
pub trait Workshop: Send + Sync {
    /// What a coder wrote for a tool of that name, examined as A-08 says; or what is wrong with it.
    fn draft<'w>(&'w self, name: &'w str, file: &'w str) -> BoxFuture<'w, Result<Drafted, NotDrafted>>;

    /// A version of the library's by this name, ready to be called.
    fn of_library<'w>(
        &'w self,
        name: &'w Arc<str>,
        version: &'w str,
    ) -> BoxFuture<'w, Result<Arc<ToolDef>, ToolError>>;

    /// Repeats calls with this version of that name alone, each from the folder that it starts at, and says what came of them, in their
    /// order.
    fn repeat<'w>(
        &'w self,
        store: &'w Arc<Store>,
        of: (&'w Arc<str>, &'w Arc<str>),
        calls: &'w [(PathBuf, Sample)],
        against: &'w Against,
    ) -> BoxFuture<'w, Result<Vec<Verdict>, Error>>;
}

impl Workshop for Catalogue {
    fn draft<'w>(&'w self, name: &'w str, file: &'w str) -> BoxFuture<'w, Result<Drafted, NotDrafted>> {
        Box::pin(Self::draft(self, name, file))
    }

    fn of_library<'w>(
        &'w self,
        name: &'w Arc<str>,
        version: &'w str,
    ) -> BoxFuture<'w, Result<Arc<ToolDef>, ToolError>> {
        Box::pin(Self::of_library(self, name, version))
    }

    fn repeat<'w>(
        &'w self,
        store: &'w Arc<Store>,
        (name, version): (&'w Arc<str>, &'w Arc<str>),
        calls: &'w [(PathBuf, Sample)],
        against: &'w Against,
    ) -> BoxFuture<'w, Result<Vec<Verdict>, Error>> {
        let mut repeating = alone(self, store, (name, version));
        Box::pin(async move { repeating.repeat(name, calls, against).await })
    }
}

/// What repeats calls with one version alone, by this name.
pub(super) fn alone(
    catalogue: &Catalogue,
    store: &Arc<Store>,
    (name, version): (&Arc<str>, &Arc<str>),
) -> Repeating {
    let only = Only { store: Arc::clone(store), offered: (Arc::clone(name), Arc::clone(version)) };
    Repeating::new(catalogue.config().clone().of_only(Arc::new(only)))
}

/// A library of one version.
struct Only {
    store: Arc<Store>,
    offered: (Arc<str>, Arc<str>),
}

impl LibrarySource for Only {
    fn offered(&self) -> Vec<(Arc<str>, Arc<str>)> {
        vec![self.offered.clone()]
    }

    fn text(&self, version: &str) -> Option<Vec<u8>> {
        self.store.get_blob(version.parse().ok()?).ok()
    }
}
