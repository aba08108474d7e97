//! Passwords that people choose: hashed with argon2id, a few at a time, on threads of their own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use argon2::password_hash::{PasswordHash, SaltString};
use argon2::{Argon2, PasswordHasher, PasswordVerifier};
use groupware_runtime::{Caller, random};
use tokio::sync::Semaphore;

/// Longest password that is looked at.
pub const MAX_PASSWORD_BYTES: usize = 1024;
/// Shortest password that may be set.
pub const MIN_PASSWORD_BYTES: usize = 8;
/// Most hashes that wait for their turn, beyond which sign-ins are put off.
const WAITING: usize = 64;
/// A verified password is remembered this long, so that Basic authentication needn't hash it for
/// every request.
const REMEMBER: Duration = Duration::from_secs(300);
/// Most verified passwords remembered.
const REMEMBERED: usize = 16_384;

/// Too many passwords wait to be hashed.
#[derive(Debug, PartialEq, Eq)]
pub struct Busy;

/// What became of a password.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is the user's.
    Right,
    /// It isn't.
    Wrong,
    /// It was not looked at, since it was not allowed.
    Refused,
    /// It was not looked at, since too many others wait.
    Busy,
}

/// Hashes and verifies, with a bound on memory (19 MiB per hash at work) and on the queue.
#[derive(Debug)]
pub struct Passwords {
    at_work: Arc<Semaphore>,
    queue: Semaphore,
    /// The hash of a secret that nobody knows: what an unknown user's password is checked
    /// against, so that it takes as long as a known one's.
    nobody: Arc<str>,
    memory: Memory,
}

impl Passwords {
    /// Lets so many be hashed at once.
    pub(crate) fn new(at_once: usize) -> Self {
        Self {
            at_work: Arc::new(Semaphore::new(at_once)),
            queue: Semaphore::new(at_once + WAITING),
            nobody: hash_now(&random::secret()).into(),
            memory: Memory::new(),
        }
    }

    /// Hashes a new password.
    ///
    /// # Errors
    /// When too many wait.
    pub async fn hash(&self, caller: &Caller, password: String) -> Result<String, Busy> {
        let hash = self.when_due(caller, || true, move || hash_now(&password));
        Ok(hash.await?.expect("hashing was allowed"))
    }

    /// Whether this is the user's password. `hash` is the user's, or `None` for a user who is
    /// unknown or has no password, who is refused after the same time. `allowed` is asked before
    /// the password is looked at, once more after waiting for a turn.
    pub(crate) async fn verify(
        &self,
        caller: &Caller,
        (user, hash): (&str, Option<&str>),
        password: &str,
        now: Duration,
        allowed: impl Fn() -> bool,
    ) -> Verdict {
        if !allowed() {
            return Verdict::Refused;
        }
        let proof = hash.map(|hash| self.memory.proof(user, hash, password));
        if proof.is_some_and(|proof| self.memory.knows(&proof, now)) {
            return Verdict::Right;
        }
        let known: Arc<str> = hash.map_or_else(|| Arc::clone(&self.nobody), Arc::from);
        let fits = password.len() <= MAX_PASSWORD_BYTES;
        let password = if fits {
            password.to_owned()
        } else {
            String::new()
        };
        let verified = match self
            .when_due(caller, allowed, move || verify_now(&known, &password))
            .await
        {
            Err(Busy) => return Verdict::Busy,
            Ok(None) => return Verdict::Refused,
            Ok(Some(verified)) => verified,
        };
        match proof {
            Some(proof) if verified && fits => {
                self.memory.remember(proof, now);
                Verdict::Right
            }
            _ => Verdict::Wrong,
        }
    }

    /// Hashes, on a thread of its own, when others before have done so; `None` if by then it is
    /// not allowed any more. The caller gives way meanwhile: a hash takes as long as a hundred other
    /// requests.
    async fn when_due<T: Send + 'static>(
        &self,
        caller: &Caller,
        allowed: impl Fn() -> bool,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<Option<T>, Busy> {
        let _waiting = self.queue.try_acquire().map_err(|_| Busy)?;
        caller
            .give_way(async {
                let permit = Arc::clone(&self.at_work).acquire_owned().await;
                let permit = permit.map_err(|_| Busy)?;
                if !allowed() {
                    return Ok(None);
                }
                // The thread works on when nobody waits any more, and so holds the permit.
                let work = on_own_thread(move || {
                    let done = work();
                    drop(permit);
                    done
                });
                Ok(Some(work.await))
            })
            .await
    }
}

async fn on_own_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

fn hash_now(password: &str) -> String {
    let salt = SaltString::encode_b64(&random::bytes::<16>())
        .expect("16 bytes are a salt of legal length");
    Argon2::default()
        .hash_password(password.as_bytes(), &salt)
        .expect("the default parameters are valid")
        .to_string()
}

fn verify_now(hash: &str, password: &str) -> bool {
    PasswordHash::new(hash).is_ok_and(|hash| {
        Argon2::default()
            .verify_password(password.as_bytes(), &hash)
            .is_ok()
    })
}

/// Proofs of passwords that were verified. A proof names user, hash, and password, keyed by a
/// secret of this process, so that memory read by others yields no fast hash of a password and a
/// changed password is forgotten.
#[derive(Debug)]
struct Memory {
    secret: [u8; 32],
    /// Each with the time at which it is forgotten.
    proofs: Mutex<HashMap<[u8; 32], Duration>>,
}

impl Memory {
    fn new() -> Self {
        Self {
            secret: random::bytes(),
            proofs: Mutex::default(),
        }
    }

    fn proof(&self, user: &str, hash: &str, password: &str) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_keyed(&self.secret);
        for part in [user, hash, password] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        *hasher.finalize().as_bytes()
    }

    fn knows(&self, proof: &[u8; 32], now: Duration) -> bool {
        let proofs = self.proofs.lock().unwrap_or_else(PoisonError::into_inner);
        proofs.get(proof).is_some_and(|until| now < *until)
    }

    fn remember(&self, proof: [u8; 32], now: Duration) {
        let mut proofs = self.proofs.lock().unwrap_or_else(PoisonError::into_inner);
        if proofs.len() >= REMEMBERED {
            proofs.retain(|_, until| now < *until);
        }
        if proofs.len() >= REMEMBERED {
            proofs.clear();
        }
        proofs.insert(proof, now + REMEMBER);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap()
            .block_on(future)
    }

    #[test]
    fn passwords_verify_and_are_remembered_until_they_change() {
        let passwords = Passwords::new(1);
        let caller = Caller::internal();
        let (early, late) = (Duration::ZERO, REMEMBER + Duration::from_secs(1));
        block_on(async {
            let hash = passwords
                .hash(&caller, "correct horse".into())
                .await
                .unwrap();
            assert!(hash.starts_with("$argon2id$"), "{hash}");
            let verify = |hash, password, now| {
                passwords.verify(&caller, ("ada", hash), password, now, || true)
            };
            assert_eq!(
                verify(Some(&hash), "wrong horse", early).await,
                Verdict::Wrong
            );
            assert_eq!(verify(None, "correct horse", early).await, Verdict::Wrong);
            assert_eq!(
                verify(Some(&hash), "correct horse", early).await,
                Verdict::Right
            );
            let proof = passwords.memory.proof("ada", &hash, "correct horse");
            assert!(passwords.memory.knows(&proof, early));
            assert!(!passwords.memory.knows(&proof, late));
            let changed = passwords
                .hash(&caller, "battery staple".into())
                .await
                .unwrap();
            assert_eq!(
                verify(Some(&changed), "correct horse", early).await,
                Verdict::Wrong
            );
            // Also what is remembered is refused: a guess must not be told from a known one.
            let refused = passwords.verify(
                &caller,
                ("ada", Some(&hash)),
                "correct horse",
                early,
                || false,
            );
            assert_eq!(refused.await, Verdict::Refused);
        });
    }

    #[test]
    fn a_full_queue_is_busy() {
        let (passwords, caller) = (Passwords::new(1), Caller::internal());
        block_on(async {
            let _all = passwords
                .queue
                .acquire_many(1 + WAITING as u32)
                .await
                .unwrap();
            let verdict = passwords
                .verify(&caller, ("ada", None), "x", Duration::ZERO, || true)
                .await;
            assert_eq!(verdict, Verdict::Busy);
        });
    }
}
