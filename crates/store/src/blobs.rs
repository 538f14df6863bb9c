//! Contents by hash: the same bytes are stored once, whoever says them and however often (E-08).

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use rusqlite::{Connection, OptionalExtension};
use sha2::{Digest, Sha256};

use crate::StoreError;

/// The SHA-256 of a content. Shown and parsed as 64 lower-case hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlobHash([u8; 32]);

impl BlobHash {
    /// The hash of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}

impl fmt::Display for BlobHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for BlobHash {
    type Err = StoreError;

    /// Fails with [`StoreError::UnknownBlob`] on anything but 64 lower-case hexadecimal digits.
    fn from_str(text: &str) -> Result<Self, StoreError> {
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Some(byte - b'0'),
            b'a'..=b'f' => Some(byte - b'a' + 10),
            _ => None,
        };
        let bytes: Option<Vec<u8>> = text
            .as_bytes()
            .chunks(2)
            .map(|pair| match *pair {
                [high, low] => Some(digit(high)? * 16 + digit(low)?),
                _ => None,
            })
            .collect();
        bytes
            .as_deref()
            .and_then(Self::from_bytes)
            .ok_or_else(|| StoreError::UnknownBlob { hash: text.to_owned() })
    }
}

/// Stores a content unless it is there already; one that was damaged since is mended by it (E-44).
pub(crate) fn insert(conn: &Connection, hash: BlobHash, bytes: &[u8]) -> rusqlite::Result<()> {
    let sql = "INSERT INTO blobs (hash, data) VALUES (?1, ?2) \
               ON CONFLICT (hash) DO UPDATE SET data = excluded.data WHERE data IS NOT excluded.data";
    conn.prepare_cached(sql)?.execute((hash.as_bytes(), bytes))?;
    Ok(())
}

/// True if a content is stored.
pub(crate) fn exists(conn: &Connection, hash: BlobHash) -> rusqlite::Result<bool> {
    conn.prepare_cached("SELECT 1 FROM blobs WHERE hash = ?1")?.exists([hash.as_bytes()])
}

/// Loads a content and makes sure that it is the one that was stored.
pub(crate) fn load(conn: &Connection, db: &Path, hash: BlobHash) -> Result<Vec<u8>, StoreError> {
    let bytes: Option<Vec<u8>> = conn
        .prepare_cached("SELECT data FROM blobs WHERE hash = ?1")
        .and_then(|mut query| query.query_row([hash.as_bytes()], |row| row.get(0)).optional())
        .map_err(|error| StoreError::from_sqlite(db, &error))?;
    let bytes = bytes.ok_or_else(|| StoreError::UnknownBlob { hash: hash.to_string() })?;
    if BlobHash::of(&bytes) == hash { Ok(bytes) } else { Err(other(db, hash)) }
}

/// Shows all contents to `see`, one after the other, having made sure of each.
pub(crate) fn each(
    conn: &Connection,
    db: &Path,
    mut see: impl FnMut(BlobHash, &[u8]) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let sql = |error| StoreError::from_sqlite(db, &error);
    let mut query = conn.prepare("SELECT hash, data FROM blobs").map_err(sql)?;
    let mut rows = query.query([]).map_err(sql)?;
    while let Some(row) = rows.next().map_err(sql)? {
        let (hash, data): (Vec<u8>, Vec<u8>) = (row.get(0).map_err(sql)?, row.get(1).map_err(sql)?);
        let hash = BlobHash::from_bytes(&hash).unwrap_or(BlobHash([0; 32]));
        if BlobHash::of(&data) != hash {
            return Err(other(db, hash));
        }
        see(hash, &data)?;
    }
    Ok(())
}

fn other(db: &Path, hash: BlobHash) -> StoreError {
    let why = format!("the content stored under {hash} has another hash");
    StoreError::Damaged { path: db.to_owned(), why }
}
