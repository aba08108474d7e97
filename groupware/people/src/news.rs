//! A log of the changes of users and sessions, in order. Servers over one store read it to keep their caches
//! consistent.
//!
//! Changes are numbered consecutively. A server commits a change only if it follows the last one that the server has
//! read. So a decision based on the server's cache is based on the current state.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use groupware_store::{Batch, Snapshot, StoreError};
use serde::{Deserialize, Serialize};

use crate::Users;
use crate::decide::{self, AccountError, Keyed};
use crate::secret::SecretHash;

/// The partition of the log. It is no valid user name.
const PARTITION: &str = "$news";
/// The record with the number of the last change. It sorts after all changes.
const LAST: &[u8] = &[0xFF];
/// The number of changes kept; a server that has missed more reloads everything.
const KEPT: u64 = 1024;
/// The number of changes between two trims of the log.
const TRIMMED_EVERY: u64 = 256;

/// A server's position in the log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Position {
    number: u64,
    /// The revision of the record with the last number; `None` before the first change.
    revision: Option<u64>,
}

/// The users and sessions that a change concerns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct News {
    /// The keys of users whose records were changed or removed.
    pub users: Vec<Arc<str>>,
    /// The hashes of the tokens of ended sessions.
    pub sessions: Vec<SecretHash>,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    users: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    sessions: Vec<String>,
}

impl Position {
    /// Reads the position of the last change.
    ///
    /// # Errors
    /// The store's, and [`AccountError::Damaged`].
    pub fn last(snapshot: &dyn Snapshot) -> Result<Self, AccountError> {
        let Some(record) = snapshot.get(PARTITION, LAST)? else {
            return Ok(Self::default());
        };
        let number = <[u8; 8]>::try_from(&*record.value);
        Ok(Self {
            number: u64::from_be_bytes(number.map_err(|_| damaged(LAST))?),
            revision: Some(record.revision),
        })
    }

    /// Makes a batch the next change after this position. The batch fails if another change has been appended.
    pub fn append(self, batch: &mut Batch, news: &News) {
        let number = self.number + 1;
        match self.revision {
            Some(revision) => batch.assert_revision(PARTITION, LAST, revision),
            None => batch.assert_absent(PARTITION, LAST),
        };
        batch
            .put(PARTITION, LAST, number.to_be_bytes().to_vec())
            .put(PARTITION, number.to_be_bytes(), news.encode());
        if number > KEPT && number.is_multiple_of(TRIMMED_EVERY) {
            let from = 0_u64.to_be_bytes();
            batch.delete_range(PARTITION, from, (number - KEPT).to_be_bytes());
        }
    }

    /// Returns the position after the next change, which was stored with this revision.
    #[must_use]
    pub fn next(self, revision: u64) -> Self {
        Self {
            number: self.number + 1,
            revision: Some(revision),
        }
    }
}

impl News {
    fn encode(&self) -> Vec<u8> {
        let stored = Stored {
            users: self.users.iter().map(ToString::to_string).collect(),
            sessions: self
                .sessions
                .iter()
                .map(|hash| URL_SAFE_NO_PAD.encode(hash))
                .collect(),
        };
        serde_json::to_vec(&stored).expect("lists of texts serialise")
    }

    fn decode(value: &[u8]) -> Option<Self> {
        let stored: Stored = serde_json::from_slice(value).ok()?;
        let hash = |text: String| URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok();
        Some(Self {
            users: stored.users.into_iter().map(Arc::from).collect(),
            sessions: stored
                .sessions
                .into_iter()
                .map(hash)
                .collect::<Option<_>>()?,
        })
    }
}

/// The changes that a server has not read yet.
#[derive(Debug)]
pub struct Missed {
    /// The position after these changes.
    pub position: Position,
    /// The current records of changed users; `None` for deleted ones.
    users: Vec<Keyed>,
    /// The ended sessions; `None` if they are not known any more: any session may have ended.
    pub sessions: Option<Vec<SecretHash>>,
    /// True if the list contains all users.
    is_all: bool,
}

impl Missed {
    /// Reads the changes since a position; `None` if there are none.
    ///
    /// # Errors
    /// The store's, and [`AccountError::Damaged`].
    pub fn since(snapshot: &dyn Snapshot, seen: Position) -> Result<Option<Self>, AccountError> {
        let position = Position::last(snapshot)?;
        if position == seen {
            return Ok(None);
        }
        let all = between(snapshot, seen.number, position.number)?;
        let Some(all) = all else {
            return Self::everything(snapshot, position).map(Some);
        };
        let (mut names, mut sessions) = (BTreeSet::new(), Vec::new());
        for news in all {
            names.extend(news.users);
            sessions.extend(news.sessions);
        }
        Ok(Some(Self {
            position,
            users: decide::read(snapshot, names)?,
            sessions: Some(sessions),
            is_all: false,
        }))
    }

    fn everything(snapshot: &dyn Snapshot, position: Position) -> Result<Self, AccountError> {
        let users = decide::read_all(snapshot)?.into_iter();
        Ok(Self {
            position,
            users: users
                .map(|user| (Arc::clone(user.name.key()), Some(user)))
                .collect(),
            sessions: None,
            is_all: true,
        })
    }

    /// Applies the changes to the users in memory.
    pub fn publish(self, to: &Users) {
        if self.is_all {
            let there: BTreeSet<&Arc<str>> = self.users.iter().map(|(key, _)| key).collect();
            for key in to.keys().iter().filter(|key| !there.contains(key)) {
                to.remove(key);
            }
        }
        for (key, user) in self.users {
            match user {
                Some(user) => to.take(user),
                None => to.remove(&key),
            }
        }
    }
}

/// Reads the changes after one, up to another; `None` if the log doesn't hold all of them any more.
fn between(
    snapshot: &dyn Snapshot,
    after: u64,
    last: u64,
) -> Result<Option<Vec<News>>, AccountError> {
    let Some(count) = last.checked_sub(after).filter(|count| *count <= 2 * KEPT) else {
        return Ok(None);
    };
    let (mut found, mut wrong) = (Vec::new(), None);
    let from = (after + 1).to_be_bytes();
    snapshot.scan(PARTITION, &from, Some(LAST), usize::MAX, &mut |key, it| {
        match News::decode(&it.value) {
            Some(news) => found.push(news),
            None => wrong = Some(damaged(key)),
        }
        match wrong {
            Some(_) => ControlFlow::Break(()),
            None => ControlFlow::Continue(()),
        }
    })?;
    match wrong {
        Some(wrong) => Err(wrong),
        None => Ok((found.len() as u64 == count).then_some(found)),
    }
}

fn damaged(key: &[u8]) -> AccountError {
    AccountError::Damaged(format!("{PARTITION}/{}", key.escape_ascii()))
}

impl From<AccountError> for StoreError {
    fn from(error: AccountError) -> Self {
        match error {
            AccountError::Store(error) => error,
            error => Self::Database(Arc::new(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use groupware_store::{CommitError, Store, StoreOptions};
    use proptest::prelude::*;

    use super::*;
    use crate::{Account, Credentials, UserName};

    fn store() -> Store {
        Store::memory(StoreOptions::default()).unwrap()
    }

    fn write(store: &Store, at: Position, news: &News) -> Result<Position, CommitError> {
        let mut batch = Batch::new();
        at.append(&mut batch, news);
        let committed = store.commit_blocking(batch)?;
        Ok(at.next(committed.revision))
    }

    fn of(name: &str) -> News {
        News {
            users: vec![name.into()],
            sessions: vec![[7; 32]],
        }
    }

    fn missed(store: &Store, seen: Position) -> Option<Missed> {
        store
            .read(|snapshot| Missed::since(snapshot, seen))
            .unwrap()
    }

    #[test]
    fn only_who_has_seen_the_last_change_makes_the_next() {
        let (store, start) = (store(), Position::default());
        assert!(missed(&store, start).is_none());
        let first = write(&store, start, &of("ada")).unwrap();
        let late = write(&store, start, &of("eve")).unwrap_err();
        assert!(matches!(late, CommitError::Conflict { .. }), "{late}");
        let seen = missed(&store, start).unwrap();
        assert_eq!(seen.position, first);
        assert!(!seen.is_all && seen.sessions == Some(vec![[7; 32]]));
        assert!(missed(&store, first).is_none());
        write(&store, seen.position, &of("eve")).unwrap();
    }

    #[test]
    fn who_has_missed_too_much_reads_everything() {
        let (store, start) = (store(), Position::default());
        let early = write(&store, start, &of("ada")).unwrap();
        let mut at = early;
        for _ in 0..KEPT + 2 * TRIMMED_EVERY {
            at = write(&store, at, &News::default()).unwrap();
        }
        let all = missed(&store, early).unwrap();
        assert!(all.is_all && all.sessions.is_none() && all.position == at);
        let late = write(&store, early, &of("eve")).unwrap_err();
        assert!(matches!(late, CommitError::Conflict { .. }), "{late}");
        // The log stays bounded.
        let mut count = 0;
        let read = store.read(|snapshot| {
            snapshot.scan(PARTITION, b"", None, usize::MAX, &mut |_, _| {
                count += 1;
                ControlFlow::Continue(())
            })
        });
        read.unwrap();
        assert!(count <= KEPT + TRIMMED_EVERY + 1, "{count}");
    }

    #[test]
    fn what_was_missed_is_made_known() {
        let store = store();
        let account = |stamp| {
            let credentials = Credentials {
                stamp,
                ..Credentials::default()
            };
            Account::new(UserName::parse("Ada").unwrap(), 1, credentials)
        };
        let users = Users::new("x");
        users.take(account(1));
        let ada = users.find("ada").unwrap();
        let mut batch = Batch::new();
        let stored = account(2);
        batch.put("$accounts", "ada", stored.stored(&stored.credentials()));
        Position::default().append(&mut batch, &of("ada"));
        store.commit_blocking(batch).unwrap();
        let seen = missed(&store, Position::default()).unwrap();
        let at = seen.position;
        seen.publish(&users);
        assert!(Arc::ptr_eq(&ada, &users.find("ada").unwrap()) && ada.admits(2));
        let mut batch = Batch::new();
        batch.delete("$accounts", "ada");
        at.append(&mut batch, &of("ada"));
        store.commit_blocking(batch).unwrap();
        missed(&store, at).unwrap().publish(&users);
        assert!(users.is_empty() && !ada.admits(2));
    }

    proptest! {
        #[test]
        fn news_are_read_as_they_were_written(
            users in prop::collection::vec("[a-z._-]{1,20}", 0..5),
            sessions in prop::collection::vec(prop::array::uniform32(0_u8..), 0..5),
        ) {
            let users = users.into_iter().map(Arc::from).collect();
            let news = News { users, sessions };
            prop_assert_eq!(News::decode(&news.encode()), Some(news));
        }

        #[test]
        fn any_bytes_are_news_or_none(bytes in prop::collection::vec(0_u8.., 0..100)) {
            let _ = News::decode(&bytes);
        }
    }
}
