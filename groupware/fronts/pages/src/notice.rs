//! A message that the next page shows once: an action was done.
//!
//! It is sent as one word of a fixed set in a cookie of a few seconds, so that no attacker can put
//! other words on a page.

use http::HeaderMap;
use http::HeaderValue;
use http::header::COOKIE;

const NAME: &str = "plimsoll_notice";

macro_rules! notices {
    ($($variant:ident = $word:literal, $text:literal;)+) => {
        /// A completed action.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Notice { $($variant),+ }

        impl Notice {
            fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            fn from_word(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)+ _ => None }
            }

            /// Its message.
            pub(crate) fn text(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }
    };
}

notices! {
    SignedOut = "signed-out", "You are signed out.";
    EventCreated = "event-created", "The event is in your calendar.";
    MeetingCreated = "meeting-created", "The meeting is in your calendar, and its people are invited.";
    EventChanged = "event-changed", "The event is changed.";
    MeetingChanged = "meeting-changed", "The meeting is changed, and its people see it.";
    EventDeleted = "event-deleted", "The event is deleted.";
    MeetingCancelled = "meeting-cancelled", "The meeting is called off, and its people are told.";
    MeetingLeft = "meeting-left", "The meeting is out of your calendar, and its organizer is told.";
    Accepted = "accepted", "You have accepted: the meeting is in your calendar.";
    Tentative = "tentative", "You may come: the meeting is in your calendar, marked as tentative.";
    Declined = "declined", "You have declined: the organizer is told.";
    Delegated = "delegated", "Somebody else is invited in your place: the organizer is told.";
    MailAccepted = "mail-accepted", "The event is in your calendar.";
    MailDeclined = "mail-declined", "You have declined: the event is not in your calendar.";
    EventMarkedCancelled = "event-marked-cancelled", "The event is marked as cancelled in your calendar.";
    EventRemoved = "event-removed", "The event is out of your calendar.";
    AnswerRecorded = "answer-recorded", "The answer is recorded in your event.";
    MailSent = "mail-sent", "The mail is sent.";
    DraftSaved = "draft-saved", "The draft is saved.";
    MovedToTrash = "moved-to-trash", "Moved to the trash.";
    Deleted = "deleted", "Deleted for good.";
    TrashEmptied = "trash-emptied", "The trash is empty.";
    Moved = "moved", "Moved.";
    MarkedRead = "marked-read", "Marked as read.";
    MarkedUnread = "marked-unread", "Marked as unread.";
    MarkedImportant = "marked-important", "Marked as important.";
    MarkedUnimportant = "marked-unimportant", "No longer marked as important.";
    FolderMade = "folder-made", "The folder is made.";
    FolderRenamed = "folder-renamed", "The folder has its new name.";
    FolderDeleted = "folder-deleted", "The folder is deleted; what was in it is in the archive.";
    PasswordChanged = "password-changed", "Your password is changed, and all other sessions have ended.";
    AppPasswordRemoved = "app-password-removed", "The program's password is taken back, and all other sessions have ended.";
    SessionsEnded = "sessions-ended", "Ended.";
    UserDisabled = "user-disabled", "The user can't sign in any more, and all of the user's sessions have ended.";
    UserEnabled = "user-enabled", "The user can sign in again.";
    UserIsAdmin = "user-is-admin", "The user may manage users now.";
    UserIsNoAdmin = "user-is-no-admin", "The user may not manage users any more.";
    UserRemoved = "user-removed", "The user is removed, with all that was the user's.";
    SettingsSaved = "settings-saved", "Your settings are saved.";
}

impl Notice {
    /// Returns the notice in a request, if any.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        let cookies = headers.get_all(COOKIE).iter();
        cookies
            .filter_map(|header| header.to_str().ok())
            .flat_map(|header| header.split(';'))
            .filter_map(|pair| pair.trim().strip_prefix(NAME)?.strip_prefix('='))
            .find_map(Self::from_word)
    }

    /// The cookie that carries it to the next page.
    pub(crate) fn cookie(self) -> HeaderValue {
        header(self.word(), 10)
    }
}

/// The cookie that removes it.
pub(crate) fn said() -> HeaderValue {
    header("", 0)
}

fn header(word: &str, seconds: u32) -> HeaderValue {
    let text = format!("{NAME}={word}; Max-Age={seconds}; HttpOnly; SameSite=Lax; Path=/");
    HeaderValue::from_str(&text).expect("words and numbers are a header's value")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_words_are_said() {
        let of = |cookie: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(COOKIE, cookie.parse().unwrap());
            Notice::of(&headers)
        };
        assert_eq!(of("a=b; plimsoll_notice=accepted"), Some(Notice::Accepted));
        assert_eq!(of("plimsoll_notice=<b>you have won</b>"), None);
        assert_eq!(of("xplimsoll_notice=accepted"), None);
        assert_eq!(of("plimsoll_notice="), None);
    }
}
