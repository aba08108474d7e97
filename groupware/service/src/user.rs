//! A signed-in user, on whose connection something is done.

use std::sync::Arc;

use groupware_documents::Who;
use groupware_people::{Account, UserName};
use groupware_runtime::Caller;

/// A signed-in user.
#[derive(Debug, Clone)]
pub struct User {
    name: UserName,
    /// When the user was registered.
    since: i64,
    caller: Caller,
}

impl User {
    /// The user of an account, on this caller's connection.
    pub fn of(account: &Account, caller: Caller) -> Self {
        caller.signed_in(account);
        Self {
            name: account.name.clone(),
            since: account.created,
            caller,
        }
    }

    /// On whose behalf it is done.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// The name as it was registered.
    pub fn name(&self) -> &Arc<str> {
        self.name.spelling()
    }

    /// The partition that holds the user's mailbox, which is also the name in the mailbox's paths.
    pub fn mailbox(&self) -> &str {
        self.name.key()
    }

    /// As decisions about documents are told, of documents of the user's own.
    pub fn who(&self) -> Who<'_> {
        Who {
            user: self.name.key(),
            since: self.since,
            mailbox: self.mailbox(),
        }
    }
}
