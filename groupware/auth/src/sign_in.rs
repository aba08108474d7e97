//! Authenticates users by password or application password, and starts sessions.

use std::sync::Arc;
use std::time::Duration;

use groupware_people::{Account, SecretHash, hash_secret};
use groupware_runtime::{Caller, Client, clock};
use groupware_store::{CommitError, StoreError};

use crate::auth::Auth;
use crate::passwords::Verdict;
use crate::throttle::Attempt;

/// The reason why a sign-in failed.
#[derive(Debug, thiserror::Error)]
pub enum SignInError {
    /// The user is unknown, or the password is wrong.
    #[error("the user name or password is wrong")]
    Wrong,
    /// The password was not checked, since too many were wrong before.
    #[error("too many failed sign-ins")]
    TooManyFailures {
        /// The time until the next check.
        wait: Duration,
    },
    /// The password was not checked, since the queue is full.
    #[error("too many sign-ins at once")]
    Busy,
    /// The store, in which other servers may have changed credentials, can't be read, or rejected
    /// the session.
    #[error(transparent)]
    Store(#[from] CommitError),
}

impl From<StoreError> for SignInError {
    fn from(error: StoreError) -> Self {
        Self::Store(error.into())
    }
}

/// An authenticated user, with the proof.
#[derive(Debug)]
pub struct Proven {
    /// The user.
    pub account: Arc<Account>,
    by: Proof,
    /// The user's stamp when the password was checked: the check takes so long that the user may be
    /// removed, or the password changed, meanwhile.
    stamp: u64,
}

#[derive(Debug)]
enum Proof {
    AppPassword(SecretHash),
    Password,
}

impl Proven {
    /// Returns true if the user signed in with the chosen password, not with an application password.
    pub fn is_by_own_password(&self) -> bool {
        matches!(self.by, Proof::Password)
    }

    /// Returns true if the proof is still valid.
    fn holds(&self) -> bool {
        let is_there = match &self.by {
            Proof::AppPassword(hash) => self.account.credentials().has_app_password(hash),
            Proof::Password => true,
        };
        is_there && self.account.admits(self.stamp)
    }
}

impl Auth {
    /// Verifies a password. Application passwords are checked first and always: they can't be guessed. Other
    /// passwords can, and so must wait after too many failures; an unknown user takes the same work as a
    /// known one. A password counts as wrong only if it is wrong by the current store, too.
    ///
    /// # Errors
    /// See [`SignInError`].
    pub async fn verify(
        &self,
        caller: &Caller,
        client: Client,
        user: &str,
        password: &str,
    ) -> Result<Proven, SignInError> {
        // Failures count for the user, by any of the user's names.
        let user = self.directory().login_name(user).unwrap_or(user);
        let attempt = Attempt { user, client };
        self.known.ensure()?;
        let seen = self.known.seen();
        let mut proven = self.prove(caller, attempt, password).await;
        if matches!(proven, Err(SignInError::Wrong)) && self.known.look_again(seen)? {
            proven = self.prove(caller, attempt, password).await;
        }
        match &proven {
            Ok(_) => self.throttle.succeeded(attempt, self.clock.now()),
            Err(SignInError::Wrong) => self.throttle.failed(attempt, self.clock.now()),
            Err(_) => {}
        }
        proven
    }

    /// The same with the cached accounts.
    async fn prove(
        &self,
        caller: &Caller,
        attempt: Attempt<'_>,
        password: &str,
    ) -> Result<Proven, SignInError> {
        let user = attempt.user;
        // A disabled user is rejected like an unknown one, after the same work.
        let enabled = |account: &Arc<Account>| !account.credentials().disabled;
        let account = self.directory().find(user).filter(enabled);
        let hash = hash_secret(password);
        let known = account.as_ref().map(|account| account.credentials());
        if let (Some(account), Some(known)) = (&account, &known)
            && known.has_app_password(&hash)
        {
            known.note_use(&hash, clock::unix_seconds());
            return Ok(Proven {
                account: Arc::clone(account),
                by: Proof::AppPassword(hash),
                stamp: known.stamp,
            });
        }
        let (now, throttle) = (self.clock.now(), &self.throttle);
        let allowed = || throttle.wait(attempt, now).is_none();
        let stored = known.as_ref().and_then(|known| known.password.as_deref());
        let rank = throttle.rank(attempt, now);
        let verify =
            (self.passwords).verify((caller, rank), (user, stored), password, now, allowed);
        match (verify.await, account.zip(known)) {
            (Verdict::Right, Some((account, known))) => Ok(Proven {
                account,
                by: Proof::Password,
                stamp: known.stamp,
            }),
            (Verdict::Right | Verdict::Wrong, _) => Err(SignInError::Wrong),
            (Verdict::Refused, _) => {
                let wait = throttle.wait(attempt, now).unwrap_or_default();
                Err(SignInError::TooManyFailures { wait })
            }
            (Verdict::Busy, _) => Err(SignInError::Busy),
        }
    }

    /// Returns the user of an application password by the cache alone: such passwords can't be
    /// guessed, and checking one is cheap.
    pub fn recognise(&self, user: &str, password: &str) -> Option<Arc<Account>> {
        self.known.ensure().ok()?;
        let user = self.directory().login_name(user).unwrap_or(user);
        let account = self.directory().find(user)?;
        let known = account.credentials();
        let is_known = !known.disabled && known.has_app_password(&hash_secret(password));
        is_known.then_some(account)
    }

    /// Starts a session and returns its token, which is stored nowhere. A change of the password, or of the
    /// user, ends the user's sessions by a new stamp: a session that starts concurrently has the old one.
    ///
    /// # Errors
    /// If the proof is no longer valid; if the store rejects the session.
    pub async fn start_session(&self, proven: &Proven) -> Result<String, SignInError> {
        if !proven.holds() {
            return Err(SignInError::Wrong);
        }
        let begun = self
            .sessions
            .start(&proven.account, proven.stamp, clock::unix_micros());
        let token = begun.await?;
        match proven.holds() {
            true => Ok(token),
            false => Err(SignInError::Wrong),
        }
    }

    /// Returns the user of a valid session.
    ///
    /// # Errors
    /// If the store is needed and can't be read.
    pub fn session(&self, token: &str) -> Result<Option<Arc<Account>>, StoreError> {
        self.sessions.find(token, clock::unix_seconds())
    }

    /// Returns true for the administrator's token.
    pub fn is_admin(&self, token: &str) -> bool {
        use subtle::ConstantTimeEq;
        hash_secret(token).ct_eq(&self.admin_token).into()
    }
}

#[cfg(test)]
mod tests {
    use groupware_people::{NewUser, UserName};
    use groupware_store::{Store, StoreOptions};

    use super::*;
    use crate::accounts::Ends;
    use crate::auth::Settings;

    fn name() -> UserName {
        UserName::parse("ada").unwrap()
    }

    async fn prove(auth: &Auth, user: &str, password: &str) -> Result<Proven, SignInError> {
        let (caller, client) = (Caller::internal(), Client::at([0, 0, 0, 0].into()));
        auth.verify(&caller, client, user, password).await
    }

    async fn with_password(auth: &Auth, password: &str) {
        let hash = auth
            .passwords
            .hash(&Caller::internal(), password.into())
            .await;
        let accounts = &auth.accounts;
        accounts
            .set_password(name(), hash.unwrap(), 0, 0)
            .await
            .unwrap();
    }

    fn runtime() -> tokio::runtime::Runtime {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_time().build().unwrap()
    }

    fn run(test: impl AsyncFnOnce(Auth)) {
        let store = Store::memory(StoreOptions::default()).unwrap();
        let auth = Auth::start(&store, &Settings::default()).unwrap();
        runtime().block_on(test(auth));
    }

    /// Two servers with the same store.
    fn servers() -> [Auth; 2] {
        let store = Store::memory(StoreOptions::default()).unwrap();
        let settings = Settings {
            is_shared: true,
            ..Settings::default()
        };
        [(); 2].map(|()| Auth::start(&store, &settings).unwrap())
    }

    /// A password check takes so long that another request reads the change of another server meanwhile.
    #[test]
    fn who_was_registered_elsewhere_just_now_can_sign_in() {
        let [here, there] = servers();
        runtime().block_on(async {
            with_password(&there, "correct horse").await;
            let mut proving = std::pin::pin!(prove(&here, "ada", "correct horse"));
            tokio::select! {
                biased;
                _ = proving.as_mut() => panic!("it takes a while"),
                () = std::future::ready(()) => {}
            }
            here.keep_up().unwrap();
            assert!(proving.await.is_ok());
        });
    }

    #[test]
    fn when_users_were_registered_is_known_of_those_of_other_servers() {
        let ([here, there], runtime) = (servers(), runtime());
        let registered = here.registrations();
        runtime.block_on(with_password(&there, "correct horse"));
        let created = there.directory().find("ada").unwrap().created;
        assert!(here.directory().find("ada").is_none());
        assert_eq!(registered("ada").unwrap(), Some(created));
        assert_eq!(registered("eve").unwrap(), None);
        // One read of the store is enough for all names that were read before.
        runtime.block_on(there.accounts.delete("ada")).unwrap();
        assert_eq!(registered("ada").unwrap(), Some(created));
        assert_eq!(registered("eve").unwrap(), None);
        assert!(here.directory().find("ada").is_some());
    }

    #[test]
    fn a_sign_in_under_way_does_not_outlive_a_new_password() {
        run(async |auth| {
            with_password(&auth, "correct horse").await;
            let late = prove(&auth, "ada", "correct horse").await.unwrap();
            with_password(&auth, "battery staple").await;
            assert!(auth.start_session(&late).await.is_err());
            assert_eq!(auth.sessions.count(), 0);
            let new = prove(&auth, "ada", "battery staple").await.unwrap();
            assert!(auth.start_session(&new).await.is_ok());
        });
    }

    #[test]
    fn a_sign_in_under_way_does_not_outlive_its_user() {
        run(async |auth| {
            with_password(&auth, "correct horse").await;
            let late = prove(&auth, "ada", "correct horse").await.unwrap();
            auth.accounts.delete("ada").await.unwrap();
            assert!(auth.start_session(&late).await.is_err());
            // A user with the same name and password is another user.
            with_password(&auth, "correct horse").await;
            assert!(auth.start_session(&late).await.is_err());
            assert_eq!(auth.sessions.count(), 0);
        });
    }

    #[test]
    fn a_sign_in_under_way_does_not_outlive_its_application_password() {
        run(async |auth| {
            let user = NewUser {
                name: name(),
                app_password: Some("phone"),
                pad_bytes: 0,
            };
            let accounts = &auth.accounts;
            let made = accounts.register(vec![user], 0).await.unwrap();
            let password = made[0].app_password.clone().unwrap();
            let late = prove(&auth, "ada", &password).await.unwrap();
            // Another application password has no effect.
            let other = accounts.add_app_password("ada", "tablet", 0).await;
            let token = auth.start_session(&late).await.unwrap();
            assert!(auth.session(&token).unwrap().is_some());
            let id = &late.account.credentials().app_passwords[0].id.clone();
            assert_ne!(*id, other.unwrap().0);
            let removed = accounts.remove_app_password("ada", id, Ends::All);
            removed.await.unwrap();
            assert!(auth.session(&token).unwrap().is_none());
            assert!(auth.start_session(&late).await.is_err());
            assert_eq!(auth.sessions.count(), 0);
        });
    }
}
