//! A signed-in user with the connection of a request.

use std::sync::Arc;

use groupware_documents::Principal;
use groupware_people::{Account, UserName};
use groupware_runtime::Caller;

/// A signed-in user.
#[derive(Debug, Clone)]
pub struct User {
    name: UserName,
    /// The time of the user's registration.
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

    /// The caller of the request.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// The name with the case of the registration.
    pub fn name(&self) -> &Arc<str> {
        self.name.spelling()
    }

    /// The partition that holds the user's account, which is also the name in the account's paths.
    pub fn mailbox(&self) -> &str {
        self.name.key()
    }

    /// The principal for decisions about the user's own documents.
    pub fn who(&self) -> Principal<'_> {
        Principal {
            user: self.name.key(),
            since: self.since,
            mailbox: self.mailbox(),
        }
    }
}
