//! Shared by the pages about users: paths, look-up, refusals.

use std::sync::Arc;

use groupware_auth::AccountsError;
use groupware_people::{Account, AccountError};
use groupware_text::push_encoded;
use http::StatusCode;

use crate::error::PageError;
use crate::field::Wrong;
use crate::front::Pages;
use crate::visitor::SignedIn;

/// The path of a user's page.
pub(super) fn path(name: &str) -> String {
    let mut path = "/users/".to_owned();
    push_encoded(&mut path, name, b"");
    path
}

/// Returns a user by the name in a path.
pub(super) fn find(pages: &Pages, name: &str) -> Result<Arc<Account>, PageError> {
    let found = pages.service.auth.find(name)?;
    found.ok_or(PageError::NotFound)
}

pub(super) fn is_self(visitor: &SignedIn, account: &Account) -> bool {
    visitor.mailbox() == &**account.name.key()
}

/// Refuses changes that lock administrators out of their own account.
pub(super) fn not_oneself(visitor: &SignedIn, account: &Account) -> Result<(), PageError> {
    let text = "This is the account that you are signed in with. Another administrator can do that, or \
                whoever runs the server, with `plimsoll users`.";
    match is_self(visitor, account) {
        true => Err(PageError::Refused(409, text.to_owned())),
        false => Ok(()),
    }
}

#[track_caller]
pub(super) fn failed(error: AccountsError) -> PageError {
    match error {
        AccountsError::Decided(AccountError::Unknown(_)) => PageError::NotFound,
        AccountsError::Decided(AccountError::TooManyUsers) => {
            PageError::Refused(507, "The server has as many users as it takes.".to_owned())
        }
        AccountsError::Decided(AccountError::Store(error)) => error.into(),
        AccountsError::Commit(error) => error.into(),
        error => PageError::Broken(groupware_http::Fault::of(&error)),
    }
}

pub(super) fn status(wrong: &Wrong) -> StatusCode {
    match wrong.is_empty() {
        true => StatusCode::OK,
        false => StatusCode::UNPROCESSABLE_ENTITY,
    }
}

/// Describes whether a user can sign in, and why not.
pub(super) fn signs_in(account: &Account) -> &'static str {
    let credentials = account.credentials();
    match (credentials.disabled, &credentials.password) {
        (true, _) => "disabled",
        (false, Some(_)) => "yes",
        (false, None) if credentials.app_passwords.is_empty() => "no password",
        (false, None) => "programs only",
    }
}
