//! Empties an account on a thread of its own that yields to all others: its reads block no event
//! loop, and its writes delay no other commit for long.

use std::sync::Arc;

use groupware_mail::{keys, release_shared};
use groupware_people as people;
use groupware_runtime::blocking;
use groupware_store::{Assert, Batch, CommitError, Op, Snapshot, Store, StoreError};

/// The number of shared bodies that one batch releases.
const AT_ONCE: usize = 100;
/// The maximum number of conflicts with concurrent releases; one of them succeeds each time.
const ROUNDS: u32 = 1000;

/// The reason why an account could not be emptied.
#[derive(Debug)]
pub(crate) enum NotEmptied {
    /// Its shared bodies can't be read.
    Unreadable(String),
    /// The store rejected the removal.
    Commit(CommitError),
}

impl From<CommitError> for NotEmptied {
    fn from(error: CommitError) -> Self {
        Self::Commit(error)
    }
}

/// The account to empty.
pub(crate) struct Emptying {
    pub(crate) store: Store,
    pub(crate) mailbox: Arc<str>,
    /// Removes everything as long as this assert holds; without it, what a reset must keep stays.
    pub(crate) departure: Option<Assert>,
}

impl Emptying {
    /// Empties the account, and waits for it. Once started, it finishes even if the caller is dropped.
    ///
    /// # Errors
    /// Errors of the store; some of the data may be removed then.
    pub(crate) async fn done(self) -> Result<(), NotEmptied> {
        let done = blocking::run_background(move || self.empty()).await;
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

    /// Releases the account's shared bodies.
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

/// Reads the bodies to be removed, so that the writer, which needs each of their pages, finds them in memory.
fn read_before(snapshot: &dyn Snapshot, batch: &Batch) -> Result<(), StoreError> {
    if snapshot.is_remote() {
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
