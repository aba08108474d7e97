//! One user: as stored, and as held in memory.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use subtle::{Choice, ConstantTimeEq};

use crate::UserName;
use crate::secret::{AppPasswordBits, SecretHash, hash_secret, secret_text};

/// Most application passwords of one user.
pub const MAX_APP_PASSWORDS: usize = 32;
/// The stamp that no session bears.
const NOBODY: u64 = u64::MAX;

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

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

/// What a user can sign in with.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Credentials {
    /// An argon2id hash in PHC form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// Passwords that the server made, one for each program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub app_passwords: Vec<AppPassword>,
    /// The user may not sign in. Mail still comes in.
    #[serde(default, skip_serializing_if = "is_false")]
    pub disabled: bool,
    /// The user sees, adds, and removes users.
    #[serde(default, skip_serializing_if = "is_false")]
    pub admin: bool,
    /// What the user's sessions bear ([`stamp`]). Those that bear another one are over: a new stamp ends them
    /// all, wherever they are known.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stamp: u64,
}

/// A stamp of random bits.
pub fn stamp(bits: [u8; 8]) -> u64 {
    // Never the one that nobody bears.
    u64::from_le_bytes(bits) >> 1
}

/// A password made by the server for one program.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AppPassword {
    /// What it is called in paths.
    pub id: String,
    /// What its user, or the administrator, calls it.
    pub label: String,
    /// Seconds since 1970.
    pub created: i64,
    /// The hash of its text.
    pub hash: SecretHash,
    /// When it was last signed in with, as far as this server has seen since it started. All copies
    /// share it; it is not stored, lest every sign-in be a write.
    #[serde(skip)]
    pub used: LastUsed,
}

/// A moment in seconds since 1970, which those who use something move on.
#[derive(Debug, Clone, Default)]
pub struct LastUsed(Arc<AtomicI64>);

impl LastUsed {
    /// The moment; `None` before the first use.
    pub fn get(&self) -> Option<i64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|moment| *moment != 0)
    }

    /// Notes a use; one within the same minute as the last isn't worth a write that other threads see.
    fn note(&self, now: i64) {
        if self.0.load(Ordering::Relaxed) / 60 != now / 60 {
            self.0.store(now, Ordering::Relaxed);
        }
    }
}

impl Credentials {
    /// Whether one of the application passwords has this hash; looks at all of them, whichever
    /// fits.
    pub fn has_app_password(&self, hash: &SecretHash) -> bool {
        let found = self
            .app_passwords
            .iter()
            .fold(Choice::from(0), |found, password| {
                found | password.hash.ct_eq(hash)
            });
        found.into()
    }

    /// Notes that the application password of this hash was signed in with.
    pub fn note_use(&self, hash: &SecretHash, now: i64) {
        let used = self
            .app_passwords
            .iter()
            .filter(|password| password.hash.ct_eq(hash).into());
        used.for_each(|password| password.used.note(now));
    }

    /// Takes over when application passwords were last used, as somebody else remembers it.
    pub(crate) fn remember_uses(&mut self, of: &Self) {
        for password in &mut self.app_passwords {
            let known = of.app_passwords.iter().find(|it| it.id == password.id);
            if let Some(known) = known {
                password.used = known.used.clone();
            }
        }
    }

    /// Adds a new application password and returns its id and text. One of the same label goes.
    /// `None` if there are as many as there may be.
    pub fn new_app_password(
        &mut self,
        label: &str,
        now: i64,
        bits: &AppPasswordBits,
    ) -> Option<(String, String)> {
        self.app_passwords
            .retain(|password| label.is_empty() || password.label != label);
        if self.app_passwords.len() >= MAX_APP_PASSWORDS {
            return None;
        }
        let (id, secret) = bits.split_at(8);
        let (id, text) = (hex(id), secret_text(secret));
        self.app_passwords.push(AppPassword {
            id: id.clone(),
            label: label.into(),
            created: now,
            hash: hash_secret(&text),
            used: LastUsed::default(),
        });
        Some((id, text))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A user in memory.
#[derive(Debug)]
pub struct Account {
    /// The user's name.
    pub name: UserName,
    /// When the user was registered, seconds since 1970.
    pub created: i64,
    /// Bytes of filler that the mailbox is to have.
    pub pad_bytes: u64,
    credentials: Mutex<Arc<Credentials>>,
    /// As the credentials have it, or [`NOBODY`]: looked at with each request.
    stamp: AtomicU64,
}

impl Account {
    /// A user without filler.
    pub fn new(name: UserName, created: i64, credentials: Credentials) -> Self {
        Self {
            name,
            created,
            pad_bytes: 0,
            stamp: AtomicU64::new(credentials.stamp),
            credentials: Mutex::new(Arc::new(credentials)),
        }
    }

    /// The same user, whose mailbox is to have so much filler.
    pub fn padded(self, pad_bytes: u64) -> Self {
        Self { pad_bytes, ..self }
    }

    /// What the user signs in with, as of now.
    pub fn credentials(&self) -> Arc<Credentials> {
        Arc::clone(
            &self
                .credentials
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }

    /// Replaces what the user signs in with, once it is stored.
    pub fn set_credentials(&self, credentials: Credentials) {
        let mut known = self
            .credentials
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        self.stamp.store(credentials.stamp, Ordering::Release);
        *known = Arc::new(credentials);
    }

    /// Whether sessions that bear this stamp are the user's, as of now.
    pub fn admits(&self, stamp: u64) -> bool {
        self.stamp.load(Ordering::Acquire) == stamp
    }

    /// The user is gone, and with the user all sessions.
    pub(crate) fn leave(&self) {
        self.stamp.store(NOBODY, Ordering::Release);
    }

    /// The record to store for this user with these credentials.
    pub fn stored(&self, credentials: &Credentials) -> Vec<u8> {
        let stored = Stored {
            name: self.name.spelling().to_string(),
            created: self.created,
            pad_bytes: self.pad_bytes,
            credentials: credentials.clone(),
        };
        serde_json::to_vec(&stored).expect("an account of texts and numbers serialises")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn app_passwords_are_found_by_hash_and_bounded() {
        let mut credentials = Credentials::default();
        let texts: Vec<_> = (0..MAX_APP_PASSWORDS)
            .map(|number| {
                let bits = [u8::try_from(number).unwrap(); 32];
                credentials.new_app_password("", 0, &bits).unwrap().1
            })
            .collect();
        assert!(credentials.new_app_password("", 0, &[1; 32]).is_none());
        for text in &texts {
            assert!(credentials.has_app_password(&hash_secret(text)));
        }
        assert!(!credentials.has_app_password(&hash_secret("")));
    }

    #[test]
    fn a_labelled_app_password_replaces_its_predecessor() {
        let mut credentials = Credentials::default();
        let (_, old) = credentials.new_app_password("lab", 0, &[1; 32]).unwrap();
        let (_, new) = credentials.new_app_password("lab", 0, &[2; 32]).unwrap();
        assert!(!credentials.has_app_password(&hash_secret(&old)));
        assert!(credentials.has_app_password(&hash_secret(&new)));
    }

    #[test]
    fn a_new_stamp_ends_what_bears_the_old_one() {
        let name = UserName::parse("a").unwrap();
        let account = Account::new(name, 0, Credentials::default());
        assert!(account.admits(0) && !account.admits(7));
        account.set_credentials(Credentials {
            stamp: 7,
            ..Credentials::default()
        });
        assert!(account.admits(7) && !account.admits(0));
        account.leave();
        assert!(!account.admits(7) && !account.admits(stamp([255; 8])));
    }
}
