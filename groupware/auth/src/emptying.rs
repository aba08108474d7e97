//! Takes everything out of a mailbox, on a thread of its own that lets all others go first: what is read for
//! that keeps no event loop, and what is written holds up nobody's commit for long.

use std::sync::Arc;

use groupware_mail::{keys, release_shared};
use groupware_people as people;
use groupware_runtime::aside;
use groupware_store::{Assert, Batch, CommitError, Op, Snapshot, Store, StoreError};

/// Messages that let go at once of what they share.
const AT_ONCE: usize = 100;
/// Others may let go of the same at the same moment; each round one of them gets on.
const ROUNDS: u32 = 1000;

/// Why a mailbox could not be emptied.
#[derive(Debug)]
pub(crate) enum NotEmptied {
    /// What it shares with others can't be read.
    Unreadable(String),
    /// The store did not take it.
    Commit(CommitError),
}

impl From<CommitError> for NotEmptied {
    fn from(error: CommitError) -> Self {
        Self::Commit(error)
    }
}

/// What is to be emptied.
pub(crate) struct Emptying {
    pub(crate) store: Store,
    pub(crate) mailbox: Arc<str>,
    /// Everything goes as long as this holds; without it, what outlives a reset stays.
    pub(crate) departure: Option<Assert>,
}

impl Emptying {
    /// Does it, and waits for it. What is begun is done to its end, whether somebody waits or not.
    ///
    /// # Errors
    /// The store's; then some may be gone.
    pub(crate) async fn done(self) -> Result<(), NotEmptied> {
        let done = aside::elsewhere(move || self.empty()).await;
        done.unwrap_or_else(|error| {
            let error = StoreError::Thread(Arc::new(error));
            Err(CommitError::Store(error).into())
        })
    }

    fn empty(&self) -> Result<(), NotEmptied> {
        self.let_go_of_shared()?;
        let (store, mailbox) = (&self.store, &self.mailbox);
        match &self.departure {
            Some(departure) => store.remove_in_slices_while(mailbox, departure)?,
            None => {
                for (from, to) in people::ranges_of_reset() {
                    store.remove_in_slices(mailbox, from, Some(to))?;
                }
            }
        }
        Ok(())
    }

    /// Lets go of what the mailbox shares with others.
    fn let_go_of_shared(&self) -> Result<(), NotEmptied> {
        let mut lost = 0;
        while lost < ROUNDS {
            let (mut batch, more) = self
                .store
                .read(|snapshot| {
                    let (batch, more) = release_shared(snapshot, &self.mailbox, AT_ONCE)?;
                    read_before(snapshot, &batch)?;
                    Ok::<_, groupware_mail::MailError>((batch, more))
                })
                .map_err(|error| NotEmptied::Unreadable(error.to_string()))?;
            if batch.is_empty() {
                return Ok(());
            }
            let others = batch.asserts.len();
            batch.asserts.extend(self.departure.clone());
            match self.store.commit_patiently(batch) {
                Ok(_) if !more => return Ok(()),
                Ok(_) => {}
                Err(CommitError::Conflict { index }) if index < others => lost += 1,
                Err(error) => return Err(error.into()),
            }
        }
        Err(CommitError::Conflict { index: 0 }.into())
    }
}

/// Reads the bodies that go, so that the writer, which must look at each page of theirs, finds them in memory.
fn read_before(snapshot: &dyn Snapshot, batch: &Batch) -> Result<(), StoreError> {
    if snapshot.is_far() {
        return Ok(());
    }
    for op in &batch.ops {
        if let Op::Delete { partition, key } = op
            && **partition == *keys::SHARED
        {
            snapshot.get(partition, key)?;
        }
    }
    Ok(())
}
