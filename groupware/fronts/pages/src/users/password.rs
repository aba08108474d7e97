//! Passwords that an administrator sets for others, and the administrator's own password as proof of identity.

use groupware_auth::{MAX_PASSWORD_BYTES, MIN_PASSWORD_BYTES};
use groupware_runtime::random;
use maud::{Markup, html};

use crate::account;
use crate::error::PageError;
use crate::field::{Input, Wrong};
use crate::form::Sent;
use crate::front::Pages;
use crate::visitor::SignedIn;

/// The field of the administrator's own password, and that of a second form on the same page.
pub(crate) const OWN: &str = "own-password";
pub(crate) const OWN_FOR_RIGHTS: &str = "own-password-for-rights";

/// A password for another user.
pub(crate) struct Password {
    pub(crate) text: String,
    is_made: bool,
}

impl Password {
    /// Returns its text, if it was generated.
    pub(crate) fn made(self) -> Option<String> {
        self.is_made.then_some(self.text)
    }
}

/// Takes the typed password, or generates one if none was typed.
pub(crate) fn chosen(typed: &str, wrong: &mut Wrong) -> Password {
    if typed.is_empty() {
        return Password {
            text: random::password(),
            is_made: true,
        };
    }
    if !(MIN_PASSWORD_BYTES..=MAX_PASSWORD_BYTES).contains(&typed.len()) {
        let text = format!("A password has at least {MIN_PASSWORD_BYTES} letters.");
        wrong.add("password", text);
    }
    Password {
        text: typed.to_owned(),
        is_made: false,
    }
}

pub(crate) fn field(name: &'static str, label: &str, wrong: &Wrong) -> Markup {
    let input = Input {
        kind: "password",
        autocomplete: Some("new-password"),
        hint: Some("Leave it empty, and the server makes one."),
        ..Input::text(name, label, "")
    };
    input.render(wrong)
}

pub(crate) fn own_field(name: &'static str, wrong: &Wrong) -> Markup {
    let input = Input {
        kind: "password",
        autocomplete: Some("current-password"),
        required: true,
        ..Input::text(name, "Your own password", "")
    };
    input.render(wrong)
}

/// Shows a new password.
pub(crate) fn made_now(text: &str) -> Markup {
    html! {
        p { "The password is" }
        p { code { (text) } }
        p { "It is shown only now. Whoever gets it can change it under Settings." }
    }
}

/// Checks the administrator's own password in the form.
pub(crate) async fn prove(
    pages: &Pages,
    (sent, name): (&Sent, &'static str),
    wrong: &mut Wrong,
) -> Result<(), PageError> {
    let given = sent.fields.get(name);
    if let Some(text) = account::prove(pages, &sent.visitor, given).await? {
        wrong.add(name, text);
    }
    Ok(())
}

pub(crate) async fn hash(
    pages: &Pages,
    visitor: &SignedIn,
    password: &str,
) -> Result<String, PageError> {
    let (service, caller) = (&pages.service, visitor.owner.caller());
    let hash = service
        .auth
        .passwords
        .hash(caller, password.to_owned())
        .await;
    let busy = "Too many passwords are set at once. Try again in a moment.";
    hash.map_err(|_| PageError::Refused(503, busy.to_owned()))
}

/// Logs an administrator's action on a user.
pub(crate) fn note(visitor: &SignedIn, user: &str, done: &str) {
    let by = &**visitor.owner.name();
    tracing::info!(by, user, "{done}");
}
