//! Versions of record formats that programs read and write. A server and its successor may share a store only while
//! each reads what the other writes.
//!
//! Formats have numbers, and the store records the highest number ever written. A program that doesn't read it gets a
//! clear error instead of records that look damaged.

use crate::{Batch, CommitError, ReadError, Record, Snapshot, Store, StoreError};

/// The partition of the format number. No other partition's name begins so.
pub const FORMS_PARTITION: &str = "\u{1}forms";
/// The key of the format number.
pub const FORMS_KEY: &[u8] = b"written";

/// The highest format numbers that a program supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forms {
    /// The highest number that the program reads.
    pub reads: u32,
    /// The highest number that the program writes, at most `reads`.
    pub writes: u32,
}

impl Forms {
    /// The formats of a program that copies records without decoding them.
    pub const ANY: Self = Self {
        reads: u32::MAX,
        writes: 0,
    };
}

/// The reason why a program may not use a store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FormsError {
    /// A later version wrote records in formats that this one doesn't support.
    #[error("the records have forms up to {found}, and this program reads forms up to {known}")]
    Newer {
        /// The highest number in the store.
        found: u32,
        /// The highest number that this program reads.
        known: u32,
    },
    /// The format number can't be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The format number can't be stored.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

impl FormsError {
    /// Returns true if a later version has written to the store.
    pub fn is_newer(&self) -> bool {
        matches!(self, Self::Newer { .. })
    }
}

impl From<StoreError> for FormsError {
    fn from(error: StoreError) -> Self {
        Self::Read(error.into())
    }
}

/// The highest format number that a store may contain; 0 if none was recorded.
///
/// # Errors
/// When the record can't be read.
pub fn written_forms(snapshot: &dyn Snapshot) -> Result<u32, ReadError> {
    let record = snapshot.get(FORMS_PARTITION, FORMS_KEY)?;
    record.map_or(Ok(0), |record| number(&record.value))
}

/// Decodes a stored format number.
///
/// # Errors
/// When the value isn't four bytes long.
pub fn number(value: &[u8]) -> Result<u32, ReadError> {
    let bytes = <[u8; 4]>::try_from(value);
    let bytes = bytes.map_err(|_| ReadError::corrupt(FORMS_KEY, "it is no number"))?;
    Ok(u32::from_be_bytes(bytes))
}

/// Encodes a format number.
pub fn number_bytes(number: u32) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

/// Checks that a program may use a store, and records the format that it is going to write. If several servers may
/// share the store, the engine has ensured that none of them reads less.
///
/// # Errors
/// See [`FormsError`]; on error, nothing was changed.
pub fn claim_forms(store: &Store, forms: Forms) -> Result<(), FormsError> {
    loop {
        let (found, record) = store.read(|snapshot| {
            let record = snapshot.get(FORMS_PARTITION, FORMS_KEY)?;
            Ok::<(u32, Option<Record>), FormsError>((written_forms(snapshot)?, record))
        })?;
        if found > forms.reads {
            let known = forms.reads;
            return Err(FormsError::Newer { found, known });
        }
        if found >= forms.writes {
            return Ok(());
        }
        let mut batch = Batch::new();
        match record {
            Some(record) => batch.assert_revision(FORMS_PARTITION, FORMS_KEY, record.revision),
            None => batch.assert_absent(FORMS_PARTITION, FORMS_KEY),
        };
        batch.put(FORMS_PARTITION, FORMS_KEY, number_bytes(forms.writes));
        match store.commit_blocking(batch) {
            Ok(_) => return Ok(()),
            // Another server committed first.
            Err(CommitError::Conflict { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StoreOptions;

    fn forms(reads: u32, writes: u32) -> Forms {
        Forms { reads, writes }
    }

    #[test]
    fn who_does_not_read_what_was_written_is_refused() {
        let store = Store::memory(StoreOptions::default()).unwrap();
        let written = || store.read(written_forms).unwrap();
        let refused = |forms| match claim_forms(&store, forms) {
            Err(FormsError::Newer { found, known }) => (found, known),
            other => panic!("{other:?}"),
        };
        claim_forms(&store, Forms::ANY).unwrap();
        assert_eq!(written(), 0);
        // Successive releases: each reads what its successor will write.
        for (reads, writes) in [(1, 1), (2, 1), (1, 1), (2, 2), (2, 1), (3, 2)] {
            claim_forms(&store, forms(reads, writes)).unwrap();
        }
        assert_eq!(written(), 2);
        assert_eq!(refused(forms(1, 1)), (2, 1));
        claim_forms(&store, forms(3, 3)).unwrap();
        assert_eq!(refused(forms(2, 2)), (3, 2));
        claim_forms(&store, Forms::ANY).unwrap();
        assert_eq!(written(), 3);
        let mut batch = Batch::new();
        batch.put(FORMS_PARTITION, FORMS_KEY, "x");
        store.commit_blocking(batch).unwrap();
        let damaged = claim_forms(&store, forms(3, 3));
        assert!(matches!(damaged, Err(FormsError::Read(_))), "{damaged:?}");
    }
}
