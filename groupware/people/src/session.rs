//! Stored sessions. Only the browser has a session's token; the store has the token's hash.

use std::ops::ControlFlow;
use std::sync::Arc;

use groupware_store::{Batch, ReadError, Snapshot};
use serde::{Deserialize, Serialize};

use crate::secret::SecretHash;

/// The partition of the sessions. It is no valid user name.
const PARTITION: &str = "$sessions";
/// The prefix of keys that map a token's hash to its user.
const BY_TOKEN: u8 = b't';
/// The prefix of keys that map a user and a hash to the session.
const BY_USER: u8 = b'u';
/// The separator between a user's name, which can't contain it, and a hash.
const END_OF_NAME: u8 = 0;

/// A session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// The session is valid while the user has [the same stamp](crate::Credentials::stamp).
    pub stamp: u64,
    /// The start of the session in microseconds since 1970. It orders a user's sessions.
    pub started_us: i64,
    /// The last stored use, in seconds since 1970; later uses may not be stored.
    pub used: i64,
}

/// A session with its stored position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldSession {
    /// The key of its user.
    pub user: Arc<str>,
    /// The hash of its token.
    pub hash: SecretHash,
    /// The session.
    pub session: Session,
    /// The revision of the session's record.
    pub revision: u64,
}

impl HeldSession {
    /// Finds the session of a token; `None` if there is none.
    ///
    /// # Errors
    /// When the store can't be read, or a record is invalid.
    pub fn find(snapshot: &dyn Snapshot, hash: &SecretHash) -> Result<Option<Self>, ReadError> {
        let key = by_token(hash);
        let Some(record) = snapshot.get(PARTITION, &key)? else {
            return Ok(None);
        };
        let user = str::from_utf8(&record.value);
        let user = user.map_err(|error| ReadError::corrupt(&key, error))?;
        let key = by_user(user, hash);
        let Some(record) = snapshot.get(PARTITION, &key)? else {
            return Ok(None);
        };
        Ok(Some(Self {
            user: user.into(),
            hash: *hash,
            session: decode(&key, &record.value)?,
            revision: record.revision,
        }))
    }

    /// Returns all sessions of a user, also ended ones, the oldest first.
    ///
    /// # Errors
    /// As [`HeldSession::find`].
    pub fn all_of(snapshot: &dyn Snapshot, user: &str) -> Result<Vec<Self>, ReadError> {
        let (from, to) = (by_user(user, &[]), after_user(user));
        let mut found = Self::within(snapshot, &from, &to, usize::MAX)?;
        found.sort_by_key(|held| held.session.started_us);
        Ok(found)
    }

    /// Returns at most `most` sessions of all users, after this one or from the first on.
    ///
    /// # Errors
    /// As [`HeldSession::find`].
    pub fn some(
        snapshot: &dyn Snapshot,
        after: Option<&Self>,
        most: usize,
    ) -> Result<Vec<Self>, ReadError> {
        let from = match after {
            Some(last) => [&*by_user(&last.user, &last.hash), &[0]].concat(),
            None => vec![BY_USER],
        };
        Self::within(snapshot, &from, &[BY_USER + 1], most)
    }

    fn within(
        snapshot: &dyn Snapshot,
        from: &[u8],
        to: &[u8],
        most: usize,
    ) -> Result<Vec<Self>, ReadError> {
        let (mut found, mut wrong) = (Vec::new(), None);
        snapshot.scan(PARTITION, from, Some(to), most, &mut |key, record| {
            let held = named(key).and_then(|(user, hash)| {
                Ok(Self {
                    user: user.into(),
                    hash,
                    session: decode(key, &record.value)?,
                    revision: record.revision,
                })
            });
            match held {
                Ok(held) => found.push(held),
                Err(error) => wrong = Some(error),
            }
            match wrong {
                Some(_) => ControlFlow::Break(()),
                None => ControlFlow::Continue(()),
            }
        })?;
        wrong.map_or(Ok(found), Err)
    }

    /// Adds a use of the session, or a new stamp, to a batch. The batch fails if the session changes or ends first.
    pub fn replace(&self, batch: &mut Batch, by: &Session) {
        let key = by_user(&self.user, &self.hash);
        batch
            .assert_revision(PARTITION, key.clone(), self.revision)
            .put(PARTITION, key, encode(by));
    }

    /// Adds the end of the session to a batch.
    pub fn end(&self, batch: &mut Batch) {
        batch
            .delete(PARTITION, by_token(&self.hash))
            .delete(PARTITION, by_user(&self.user, &self.hash));
    }
}

impl Session {
    /// Adds the start of the session of a user to a batch, by the hash of its token.
    pub fn begin(&self, batch: &mut Batch, user: &str, hash: &SecretHash) {
        batch.put(PARTITION, by_token(hash), user.to_owned()).put(
            PARTITION,
            by_user(user, hash),
            encode(self),
        );
    }
}

fn by_token(hash: &SecretHash) -> Vec<u8> {
    [&[BY_TOKEN], &hash[..]].concat()
}

fn by_user(user: &str, hash: &[u8]) -> Vec<u8> {
    [&[BY_USER], user.as_bytes(), &[END_OF_NAME], hash].concat()
}

fn after_user(user: &str) -> Vec<u8> {
    [&[BY_USER], user.as_bytes(), &[END_OF_NAME + 1]].concat()
}

/// Parses the user and the hash in a key by user.
fn named(key: &[u8]) -> Result<(&str, SecretHash), ReadError> {
    let wrong = || ReadError::corrupt(key, "it names no session");
    let (_, rest) = key.split_first().ok_or_else(wrong)?;
    let (user, hash) = rest.split_last_chunk::<32>().ok_or_else(wrong)?;
    let user = user.strip_suffix(&[END_OF_NAME]).ok_or_else(wrong)?;
    Ok((str::from_utf8(user).map_err(|_| wrong())?, *hash))
}

fn encode(session: &Session) -> Vec<u8> {
    serde_json::to_vec(session).expect("numbers serialise")
}

fn decode(key: &[u8], value: &[u8]) -> Result<Session, ReadError> {
    serde_json::from_slice(value).map_err(|error| ReadError::corrupt(key, error))
}

#[cfg(test)]
mod tests {
    use groupware_store::{CommitError, Store, StoreOptions};

    use super::*;

    const SESSION: Session = Session {
        stamp: 7,
        started_us: 1,
        used: 1,
    };

    fn commit(store: &Store, fill: impl FnOnce(&mut Batch)) -> Result<(), CommitError> {
        let mut batch = Batch::new();
        fill(&mut batch);
        store.commit_blocking(batch).map(drop)
    }

    fn find(store: &Store, hash: u8) -> Option<HeldSession> {
        let found = store.read(|snapshot| HeldSession::find(snapshot, &[hash; 32]));
        found.unwrap()
    }

    fn all_of(store: &Store, user: &str) -> Vec<u8> {
        let all = store
            .read(|snapshot| HeldSession::all_of(snapshot, user))
            .unwrap();
        all.iter().map(|held| held.hash[0]).collect()
    }

    #[test]
    fn sessions_are_found_by_token_and_by_user() {
        let store = Store::memory(StoreOptions::default()).unwrap();
        let begin = |user: &str, hash: u8, started_us| {
            let session = Session {
                started_us,
                ..SESSION
            };
            commit(&store, |batch| session.begin(batch, user, &[hash; 32])).unwrap();
        };
        begin("ada", 0, 30);
        begin("ada", 255, 10);
        begin("ad", 1, 20);
        begin("adam", 2, 20);
        let found = find(&store, 255).unwrap();
        assert_eq!((&*found.user, found.session.started_us), ("ada", 10));
        assert_eq!(find(&store, 9), None);
        assert_eq!(all_of(&store, "ada"), [255, 0]);
        assert_eq!(all_of(&store, "ad"), [1]);
        let some = |after: Option<&HeldSession>, most| {
            let some = store.read(|snapshot| HeldSession::some(snapshot, after, most));
            some.unwrap()
        };
        let first = some(None, 3);
        let rest = some(first.last(), 9);
        let told = first.iter().chain(&rest).map(|held| held.hash[0]);
        assert_eq!(told.collect::<Vec<_>>(), [1, 0, 255, 2]);
    }

    #[test]
    fn a_session_that_has_ended_does_not_come_back() {
        let store = Store::memory(StoreOptions::default()).unwrap();
        commit(&store, |batch| SESSION.begin(batch, "ada", &[1; 32])).unwrap();
        let held = find(&store, 1).unwrap();
        let used = Session { used: 9, ..SESSION };
        commit(&store, |batch| held.replace(batch, &used)).unwrap();
        let again = commit(&store, |batch| held.replace(batch, &used)).unwrap_err();
        assert!(matches!(again, CommitError::Conflict { .. }), "{again}");
        let held = find(&store, 1).unwrap();
        assert_eq!(held.session, used);
        commit(&store, |batch| held.end(batch)).unwrap();
        assert_eq!((find(&store, 1), all_of(&store, "ada")), (None, Vec::new()));
        let late = commit(&store, |batch| held.replace(batch, &used)).unwrap_err();
        assert!(matches!(late, CommitError::Conflict { .. }), "{late}");
    }
}
