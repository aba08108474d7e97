//! How registrations lie in the store: three ways to keep the same data.

mod documents;
mod indexed;
mod keep;
mod single;
mod tally;

use groupware_store::{Batch, Snapshot};

use crate::LookupError;

pub(crate) use keep::{Change, Keep};
pub(crate) use tally::Amount;

/// How registrations lie in the store. Each layout keeps its own: what was registered under one is
/// not seen under another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Layout {
    /// All in one document, which every change rewrites and every query reads.
    SingleDocument,
    /// A document each; a query reads them all.
    DocumentPerRegistration,
    /// A document each, and an entry of an index for each value of the keys that are asked for.
    #[default]
    Indexed,
}

impl Layout {
    /// All layouts.
    pub const ALL: [Self; 3] = [
        Self::SingleDocument,
        Self::DocumentPerRegistration,
        Self::Indexed,
    ];

    /// As settings name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::SingleDocument => "single-document",
            Self::DocumentPerRegistration => "document-per-registration",
            Self::Indexed => "indexed",
        }
    }

    pub(crate) fn keep(self) -> &'static dyn Keep {
        match self {
            Self::SingleDocument => &single::SingleDocument,
            Self::DocumentPerRegistration => &documents::Documents,
            Self::Indexed => &indexed::Indexed,
        }
    }

    /// What to commit to clear away a little of what has ended, and whether there may be more;
    /// `None` if there is nothing to do.
    ///
    /// # Errors
    /// When the store fails.
    pub fn sweep(self, snapshot: &dyn Snapshot, now: i64) -> Result<Option<Batch>, LookupError> {
        self.keep().sweep(snapshot, now)
    }
}
