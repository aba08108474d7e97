//! A server to look at: a few users, whose mails and meetings lie around the day it starts.
//!
//! Everything goes the way that users' own requests go, with other moments: nothing is written
//! that they could not have written.

mod letters;
mod meetings;

use std::net::SocketAddr;

use groupware_store::CommitError;

use self::letters::Letter;
use crate::accounts::{AccountError, UserName};
use crate::{AppState, random};

/// Room in a mailbox, so that the pages have something to show.
pub(crate) const QUOTA_BYTES: u64 = 200_000_000;

/// The users. The first is the one to look as: most of the mails are hers.
const USERS: [&str; 4] = ["ada", "ben", "carla", "dmitri"];

/// Why a server could not be filled.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DemoError {
    #[error(transparent)]
    Account(#[from] AccountError),
    #[error("a user could not be made")]
    User,
    #[error(transparent)]
    Mail(#[from] groupware_mail::MailError),
    #[error(transparent)]
    Commit(#[from] CommitError),
    #[error("a meeting was refused: {0}")]
    Meeting(String),
}

/// A user to sign in as.
pub(crate) struct DemoUser {
    name: &'static str,
    password: String,
}

/// Makes the users and all that is theirs.
///
/// # Errors
/// When the store fails, or refuses something.
pub(crate) async fn fill(state: &AppState) -> Result<Vec<DemoUser>, DemoError> {
    let mut users = Vec::with_capacity(USERS.len());
    for name in USERS {
        let password = password();
        let hash = state.passwords.hash(password.clone()).await;
        let hash = hash.map_err(|_| DemoError::User)?;
        let user = UserName::parse(name).ok_or(DemoError::User)?;
        state
            .accounts
            .set_password(user, hash, 0, state.now_s())
            .await?;
        users.push(DemoUser { name, password });
    }
    for letter in Letter::all() {
        letter.deliver(state).await?;
    }
    meetings::arrange(state).await?;
    Ok(users)
}

/// 80 random bits in letters and digits that nobody mistakes for each other.
fn password() -> String {
    const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let letters = random::bytes::<16>().map(|byte| char::from(LETTERS[usize::from(byte % 32)]));
    let groups: Vec<String> = letters
        .chunks(4)
        .map(|group| group.iter().collect())
        .collect();
    groups.join("-")
}

/// What whoever starts it needs to know.
pub(crate) fn greeting(scheme: &str, address: SocketAddr, users: &[DemoUser]) -> String {
    let mut text = format!("\nOpen {scheme}://{address}/ and sign in as one of\n");
    for DemoUser { name, password } in users {
        text += &format!("  {name:<8} {password}\n");
    }
    text += "All of it is in memory. Ctrl-C ends the server, and nothing is left.\n";
    text
}

#[cfg(test)]
mod tests {
    use groupware_mail::Folder;
    use groupware_store::{Store, StoreOptions};

    use super::*;

    #[tokio::test]
    async fn there_is_something_to_look_at() {
        let store = Store::memory(StoreOptions::default()).unwrap();
        let state = crate::server::state_for_tests(store);
        let users = fill(&state).await.unwrap();
        assert_eq!(users.len(), USERS.len());
        let counts = |folder| {
            let read = |snapshot: &dyn groupware_store::Snapshot| {
                groupware_mail::counts(snapshot, "ada", folder)
            };
            crate::mail::decide::read(&state, read).unwrap()
        };
        let inbox = counts(Folder::Inbox);
        assert!(inbox.messages > 10 && inbox.unread > 1 && inbox.unread < inbox.messages);
        assert!(counts(Folder::Sent).messages > 1);
        assert_eq!(counts(Folder::Drafts).messages, 1);
        let open = state
            .store()
            .read(|snapshot| groupware_calendar::count_invitations(snapshot, "ada", 9));
        assert!(open.unwrap() > 0);
        let text = greeting("http", SocketAddr::from(([127, 0, 0, 1], 8340)), &users);
        assert!(text.contains("http://127.0.0.1:8340/") && text.contains(&users[3].password));
        let (one, other) = (password(), password());
        assert!(one != other && one.len() == 19, "{one}");
    }
}
