//! The tables, compressed in the binary, and read when they are first needed.

use super::Encoding;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use std::collections::HashMap;
use std::io::Read;
use std::sync::OnceLock;

const CL100K: &[u8] = include_bytes!("../../data/cl100k_base.tiktoken.gz");
const O200K: &[u8] = include_bytes!("../../data/o200k_base.tiktoken.gz");

/// The tokens of an encoding with their ranks: of two that could be made, that of the lower rank is.
#[derive(Debug, Default)]
pub(super) struct Table {
    ranks: HashMap<Vec<u8>, u32>,
}

impl Table {
    pub(super) fn of(encoding: Encoding) -> &'static Self {
        static TABLES: [OnceLock<Table>; 2] = [OnceLock::new(), OnceLock::new()];
        let [cl100k, o200k] = &TABLES;
        match encoding {
            Encoding::Cl100kBase => cl100k.get_or_init(|| Self::read(&text(CL100K))),
            Encoding::O200kBase => o200k.get_or_init(|| Self::read(&text(O200K))),
        }
    }

    pub(super) fn rank(&self, bytes: &[u8]) -> Option<u32> {
        self.ranks.get(bytes).copied()
    }

    /// What no line of a table is, there is none of in ours: a test reads them.
    fn read(text: &str) -> Self {
        let line = |line: &str| {
            let (token, rank) = line.split_once(' ')?;
            Some((STANDARD.decode(token).ok()?, rank.parse().ok()?))
        };
        Self { ranks: text.lines().filter_map(line).collect() }
    }
}

/// The text of a table.
fn text(packed: &[u8]) -> String {
    let mut text = String::new();
    // They are a part of this program: a test unpacks them.
    let _ = GzDecoder::new(packed).read_to_string(&mut text);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest, Sha256};

    /// The hashes are those of `tiktoken` itself.
    #[test]
    fn a13_tables_are_those_that_openai_publishes() {
        for (packed, hash, size, encoding) in [
            (
                CL100K,
                "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
                100_256,
                Encoding::Cl100kBase,
            ),
            (
                O200K,
                "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
                199_998,
                Encoding::O200kBase,
            ),
        ] {
            let digest = Sha256::digest(text(packed).as_bytes());
            let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(digest, hash);
            let table = Table::of(encoding);
            assert_eq!(table.ranks.len(), size);
            assert!((0..=255_u8).all(|byte| table.rank(&[byte]).is_some()));
        }
    }
}
