//! Which forms of records programs read and write: a server and the version after it may be beside each other over
//! the same records only as long as each reads what the other writes.
//!
//! Forms have numbers, and the highest that was ever written stands in the store. A program that doesn't read it is
//! refused in words, in place of records that it takes for damaged ones.

use crate::{Batch, CommitError, ReadError, Record, Snapshot, Store, StoreError};

/// Where the number stands. No partition of anybody else begins so.
pub const FORMS_PARTITION: &str = "\u{1}forms";
/// Its key.
pub const FORMS_KEY: &[u8] = b"written";

/// Up to which number a program knows forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forms {
    /// It reads these.
    pub reads: u32,
    /// It writes these, at most what it reads.
    pub writes: u32,
}

impl Forms {
    /// Of a program that moves records whatever they mean.
    pub const ANY: Self = Self {
        reads: u32::MAX,
        writes: 0,
    };
}

/// Why a program may not use a store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FormsError {
    /// A later version has written records in forms that this one doesn't know.
    #[error("the records have forms up to {found}, and this program reads forms up to {known}")]
    Newer {
        /// The highest number in the store.
        found: u32,
        /// The highest that this program reads.
        known: u32,
    },
    /// The number can't be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The number can't be stored.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

impl FormsError {
    /// Whether a later version has written to the store.
    pub fn is_newer(&self) -> bool {
        matches!(self, Self::Newer { .. })
    }
}

impl From<StoreError> for FormsError {
    fn from(error: StoreError) -> Self {
        Self::Read(error.into())
    }
}

/// The highest number whose forms may be in a store; 0 where nobody has said.
///
/// # Errors
/// When it can't be read.
pub fn written_forms(snapshot: &dyn Snapshot) -> Result<u32, ReadError> {
    let record = snapshot.get(FORMS_PARTITION, FORMS_KEY)?;
    record.map_or(Ok(0), |record| number(&record.value))
}

/// The number from its stored form.
///
/// # Errors
/// When it is none.
pub fn number(value: &[u8]) -> Result<u32, ReadError> {
    let bytes = <[u8; 4]>::try_from(value);
    let bytes = bytes.map_err(|_| ReadError::corrupt(FORMS_KEY, "it is no number"))?;
    Ok(u32::from_be_bytes(bytes))
}

/// The stored form of a number.
pub fn number_bytes(number: u32) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

/// Finds out whether a program may use a store, and notes what it is going to write. Where several servers may be at
/// it, the engine has seen to it that none of them reads less.
///
/// # Errors
/// See [`FormsError`]; then nothing was changed.
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
            // Another server was faster.
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
        // One release after the other: the second reads what the third is going to write.
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
