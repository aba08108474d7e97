//! Upper bounds of the users' numbers of sessions: a user with few sessions starts another one without a count.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The maximum number of recorded users; beyond it the record is cleared, and their sessions are counted again.
const USERS: usize = 1 << 16;

/// Upper bounds of the users' numbers of sessions in a store that no other server changes. Expired
/// sessions are included until the next count.
#[derive(Debug)]
pub(crate) struct Begun {
    most: usize,
    of_users: Mutex<HashMap<Arc<str>, usize>>,
}

/// The upper bound of a user when a count started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Before(Option<usize>);

impl Begun {
    /// For users with at most this many sessions.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            of_users: Mutex::default(),
        }
    }

    /// Counts one more session.
    ///
    /// # Errors
    /// If the user's sessions must be counted first.
    pub(crate) fn begin(&self, user: &str) -> Result<(), Before> {
        match self.lock().get_mut(user) {
            Some(count) if *count < self.most => {
                *count += 1;
                Ok(())
            }
            count => Err(Before(count.copied())),
        }
    }

    /// Counts one more session after a count of `found` sessions, excluding those that are about to end.
    pub(crate) fn looked(&self, user: &Arc<str>, before: Before, found: usize) {
        let mut of_users = self.lock();
        let now = of_users.get(user).copied();
        // The count may or may not include sessions started since then.
        let count = match now {
            Some(now) if Before(Some(now)) != before => now.max(found),
            _ => found,
        };
        if of_users.len() >= USERS {
            of_users.clear();
        }
        of_users.insert(Arc::clone(user), count + 1);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, usize>> {
        self.of_users.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_have_too_many_is_looked_at() {
        let ada: Arc<str> = "ada".into();
        let begun = Begun::new(4);
        let before = begun.begin("ada").unwrap_err();
        begun.looked(&ada, before, 2);
        assert_eq!(begun.begin("ada"), Ok(()));
        let before = begun.begin("ada").unwrap_err();
        assert!(begun.begin("ada").is_err() && begun.begin("eve").is_err());
        begun.looked(&ada, before, 0);
        for _ in 0..3 {
            assert_eq!(begun.begin("ada"), Ok(()));
        }
        assert!(begun.begin("ada").is_err());
    }

    #[test]
    fn of_two_who_look_at_once_both_count() {
        let ada: Arc<str> = "ada".into();
        let begun = Begun::new(4);
        let (one, other) = (
            begun.begin("ada").unwrap_err(),
            begun.begin("ada").unwrap_err(),
        );
        begun.looked(&ada, one, 2);
        begun.looked(&ada, other, 2);
        assert!(begun.begin("ada").is_err());
    }
}
