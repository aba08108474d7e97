//! Passwords that users choose: hashed with argon2id, a few concurrently, on threads of their own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use argon2::password_hash::{PasswordHash, SaltString};
use argon2::{Argon2, PasswordHasher, PasswordVerifier};
use groupware_net::FairSemaphore;
use groupware_runtime::{Caller, random};

/// The longest accepted password, in bytes.
pub const MAX_PASSWORD_BYTES: usize = 1024;
/// The shortest password that may be set, in bytes.
pub const MIN_PASSWORD_BYTES: usize = 8;
/// The maximum queue of hashes; beyond it, those of the highest rank are rejected.
const WAITING: usize = 256;
/// The time for which a verified password is cached, so that Basic authentication needn't hash it
/// for every request.
const REMEMBER: Duration = Duration::from_secs(300);
/// The maximum number of cached verified passwords.
const REMEMBERED: usize = 16_384;

/// Too many passwords wait to be hashed.
#[derive(Debug, PartialEq, Eq)]
pub struct Busy;

/// The result of verifying a password.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is correct.
    Right,
    /// It is wrong.
    Wrong,
    /// It was not checked, since the attempt was not allowed.
    Refused,
    /// It was not checked, since the queue is full.
    Busy,
}

/// Hashes and verifies passwords, with a bound on memory (19 MiB per concurrent hash) and on the queue.
#[derive(Debug)]
pub struct Passwords {
    turns: FairSemaphore,
    /// The hash of an unknown secret: the password of an unknown user is checked against it, so
    /// that it takes as long as a known user's.
    nobody: Arc<str>,
    memory: Memory,
}

impl Passwords {
    /// Allows this number of concurrent hashes.
    pub(crate) fn new(at_once: usize) -> Self {
        Self {
            turns: FairSemaphore::of_turns(at_once, WAITING),
            nobody: hash_now(&random::secret()).into(),
            memory: Memory::new(),
        }
    }

    /// Hashes a new password.
    ///
    /// # Errors
    /// If the queue is full.
    pub async fn hash(&self, caller: &Caller, password: String) -> Result<String, Busy> {
        let hash = self.when_due((caller, 0), || true, move || hash_now(&password));
        Ok(hash.await?.expect("hashing was allowed"))
    }

    /// Verifies a user's password. `hash` is `None` for a user that is unknown or has no password;
    /// the result is then `Wrong` after the same time. `allowed` is called before the password is
    /// checked, and again after queueing. A lower rank is served first.
    pub(crate) async fn verify(
        &self,
        (caller, rank): (&Caller, u32),
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
            .when_due((caller, rank), allowed, move || {
                verify_now(&known, &password)
            })
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

    /// Hashes on a thread of its own after queueing; `None` if it is no longer allowed then. The
    /// caller yields its place meanwhile: a hash takes as long as a hundred other requests.
    async fn when_due<T: Send + 'static>(
        &self,
        (caller, rank): (&Caller, u32),
        allowed: impl Fn() -> bool,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<Option<T>, Busy> {
        let source = caller.source();
        caller
            .yield_until(async {
                let turn = self.turns.take_ranked(&source, rank).await;
                let turn = turn.ok_or(Busy)?;
                if !allowed() {
                    return Ok(None);
                }
                // The thread continues if the caller is dropped, and so holds the permit.
                let work = on_own_thread(move || {
                    let done = work();
                    drop(turn);
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

/// Proofs of verified passwords. A proof is a hash of user, password hash, and password, keyed by a
/// secret of this process: leaked memory yields no fast hash of a password, and a changed password
/// invalidates it.
#[derive(Debug)]
struct Memory {
    secret: [u8; 32],
    /// Each with its expiry time.
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
                passwords.verify((&caller, 0), ("ada", hash), password, now, || true)
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
            // Cached passwords are rejected, too: the response must not distinguish a guess from a known one.
            let refused = passwords.verify(
                (&caller, 0),
                ("ada", Some(&hash)),
                "correct horse",
                early,
                || false,
            );
            assert_eq!(refused.await, Verdict::Refused);
        });
    }

    /// Guesses from many addresses wait behind a sign-in from an address without failures, and are
    /// rejected if the queue is full.
    #[test]
    fn many_who_guess_leave_others_their_turn() {
        let (passwords, ada) = (Passwords::new(1), Caller::at([192, 0, 2, 1].into()));
        let guesser =
            |number: usize| Caller::at([198, 51, (number >> 8) as u8, number as u8].into());
        block_on(async {
            let hash = passwords.hash(&ada, "correct horse".into()).await.unwrap();
            let turn = passwords.turns.take(&ada.source(), 1).await;
            let guessers: Vec<_> = (0..=WAITING).map(guesser).collect();
            let mut guesses: Vec<_> = guessers
                .iter()
                .map(|guesser| {
                    let guess =
                        passwords.verify((guesser, 2), ("ada", None), "x", Duration::ZERO, || true);
                    Box::pin(guess)
                })
                .collect();
            let mut put_off = 0;
            for guess in &mut guesses {
                tokio::select! {
                    biased;
                    verdict = guess => put_off += usize::from(verdict == Verdict::Busy),
                    () = std::future::ready(()) => {}
                }
            }
            assert_eq!(put_off, 1);
            let right = (("ada", Some(&*hash)), "correct horse");
            let own = passwords.verify((&ada, 1), right.0, right.1, Duration::ZERO, || true);
            let mut own = Box::pin(own);
            tokio::select! {
                biased;
                _ = &mut own => panic!("it is nobody's turn yet"),
                () = std::future::ready(()) => {}
            }
            drop(turn);
            assert_eq!(own.await, Verdict::Right);
        });
    }
}
