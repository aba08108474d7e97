//! One user: as stored, and as held in memory.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use subtle::{Choice, ConstantTimeEq};

use super::UserName;
use crate::random::{self, SecretHash};

/// Most application passwords of one user.
pub(crate) const MAX_APP_PASSWORDS: usize = 32;
/// Most sessions of one user; a further one ends the oldest.
const MAX_SESSIONS: usize = 64;

/// What is stored of a user.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Stored {
    pub(crate) name: String,
    /// Seconds since 1970.
    pub(crate) created: i64,
    /// Bytes of filler that the mailbox is to have; there may be less if the server stopped
    /// before all was written.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) pad_bytes: u64,
    #[serde(flatten)]
    pub(crate) credentials: Credentials,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What a user can sign in with.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Credentials {
    /// An argon2id hash in PHC form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) password: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) app_passwords: Vec<AppPassword>,
}

/// A password made by the server for one program.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct AppPassword {
    pub(crate) id: String,
    pub(crate) label: String,
    /// Seconds since 1970.
    pub(crate) created: i64,
    pub(crate) hash: SecretHash,
}

impl Credentials {
    /// Whether one of the application passwords has this hash; looks at all of them, whichever
    /// fits.
    pub(crate) fn has_app_password(&self, hash: &SecretHash) -> bool {
        let found = self
            .app_passwords
            .iter()
            .fold(Choice::from(0), |found, password| {
                found | password.hash.ct_eq(hash)
            });
        found.into()
    }

    /// Adds a new application password and returns its id and text. One of the same label goes.
    pub(crate) fn new_app_password(&mut self, label: &str, now: i64) -> Option<(String, String)> {
        self.app_passwords
            .retain(|password| label.is_empty() || password.label != label);
        if self.app_passwords.len() >= MAX_APP_PASSWORDS {
            return None;
        }
        let (id, text) = (hex(&random::bytes::<8>()), random::secret());
        self.app_passwords.push(AppPassword {
            id: id.clone(),
            label: label.into(),
            created: now,
            hash: random::hash(&text),
        });
        Some((id, text))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A user in memory.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) name: UserName,
    pub(crate) created: i64,
    /// Bytes of filler that the mailbox is to have.
    pub(crate) pad_bytes: u64,
    credentials: Mutex<Arc<Credentials>>,
    /// The hashes of the tokens of the user's sessions, oldest first.
    sessions: Mutex<VecDeque<SecretHash>>,
}

impl Account {
    pub(crate) fn new(name: UserName, created: i64, credentials: Credentials) -> Self {
        Self {
            name,
            created,
            pad_bytes: 0,
            credentials: Mutex::new(Arc::new(credentials)),
            sessions: Mutex::default(),
        }
    }

    pub(crate) fn padded(self, pad_bytes: u64) -> Self {
        Self { pad_bytes, ..self }
    }

    pub(crate) fn credentials(&self) -> Arc<Credentials> {
        Arc::clone(
            &self
                .credentials
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }

    pub(crate) fn set_credentials(&self, credentials: Credentials) {
        *self
            .credentials
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Arc::new(credentials);
    }

    /// The record to store for this user with these credentials.
    pub(crate) fn stored(&self, credentials: &Credentials) -> Vec<u8> {
        let stored = Stored {
            name: self.name.spelling().to_string(),
            created: self.created,
            pad_bytes: self.pad_bytes,
            credentials: credentials.clone(),
        };
        serde_json::to_vec(&stored).expect("an account of texts and numbers serialises")
    }

    /// Notes a new session; returns the one that must end for it.
    pub(crate) fn add_session(&self, token: SecretHash) -> Option<SecretHash> {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.push_back(token);
        (sessions.len() > MAX_SESSIONS)
            .then(|| sessions.pop_front())
            .flatten()
    }

    pub(crate) fn remove_session(&self, token: &SecretHash) {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|session| session != token);
    }

    pub(crate) fn take_sessions(&self) -> VecDeque<SecretHash> {
        std::mem::take(&mut self.sessions.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn app_passwords_are_found_by_hash_and_bounded() {
        let mut credentials = Credentials::default();
        let texts: Vec<_> = (0..MAX_APP_PASSWORDS)
            .map(|_| credentials.new_app_password("", 0).unwrap().1)
            .collect();
        assert!(credentials.new_app_password("", 0).is_none());
        for text in &texts {
            assert!(credentials.has_app_password(&random::hash(text)));
        }
        assert!(!credentials.has_app_password(&random::hash("")));
    }

    #[test]
    fn a_labelled_app_password_replaces_its_predecessor() {
        let mut credentials = Credentials::default();
        let (_, old) = credentials.new_app_password("lab", 0).unwrap();
        let (_, new) = credentials.new_app_password("lab", 0).unwrap();
        assert!(!credentials.has_app_password(&random::hash(&old)));
        assert!(credentials.has_app_password(&random::hash(&new)));
    }

    #[test]
    fn the_oldest_session_makes_room() {
        let account = Account::new(UserName::parse("a").unwrap(), 0, Credentials::default());
        for number in 0..MAX_SESSIONS {
            assert_eq!(
                account.add_session([u8::try_from(number).unwrap(); 32]),
                None
            );
        }
        assert_eq!(account.add_session([255; 32]), Some([0; 32]));
    }
}
