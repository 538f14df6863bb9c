//! Who hears what is worth telling while something is prepared, and who is asked.

use selvedge_dialects::Diagnostic;

/// A listener. `()` hears nothing, and trusts nothing.
pub trait Observer: Send + Sync {
    /// Something that goes on, which a quiet program leaves out.
    fn note(&self, _text: &str) {}

    /// A warning that is about no file, which a quiet program leaves out.
    fn warning(&self, _text: &str) {}

    /// A warning about a file, which a quiet program leaves out.
    fn finding(&self, _finding: &Diagnostic) {}

    /// Warnings about a document that something else is asked of than to check it: as many of them as fit.
    fn findings(&self, _findings: &[Diagnostic]) {}

    /// What nobody should miss.
    fn alert(&self, _finding: &Diagnostic) {}

    /// Asks a person whether to trust what `question` tells (C-20).
    fn trusts(&self, _question: &str) -> bool {
        false
    }
}

impl Observer for () {}
