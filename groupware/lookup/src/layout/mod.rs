//! The storage layouts of registrations: three ways to store the same data.

mod documents;
mod indexed;
mod keep;
mod single;
mod tally;

use groupware_store::{Batch, Snapshot};

use crate::LookupError;

pub(crate) use keep::{Change, Keep};
pub(crate) use tally::Amount;

/// The storage layout of registrations. Each layout has its own data: registrations under one are
/// invisible under another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Layout {
    /// All in one document, which every change rewrites and every query reads.
    SingleDocument,
    /// One document per registration; a query reads them all.
    DocumentPerRegistration,
    /// One document per registration, and an index entry for each value of the indexed keys.
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

    /// The name in settings.
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

    /// Returns a batch that clears some of the expired data, after which there may be more; `None`
    /// if there is nothing to do.
    ///
    /// # Errors
    /// If the store fails.
    pub fn sweep(self, snapshot: &dyn Snapshot, now: i64) -> Result<Option<Batch>, LookupError> {
        self.keep().sweep(snapshot, now)
    }
}
