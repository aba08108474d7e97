//! Commands that prepare a system, by their places among all that prepares it. It runs nothing.

use lab_study::{Action, Preparation, USERS_FILE};

/// The words of the command at a place, which finds the list of users in this file; `None` where there is none.
#[must_use]
pub fn command(preparation: &Preparation, at: usize, users_file: &str) -> Option<Vec<String>> {
    let fill = |word: &String| word.replace(USERS_FILE, users_file);
    Some(words(preparation, at)?.iter().map(fill).collect())
}

/// Whether the command at a place reads the list of users.
pub(crate) fn lists_users(preparation: &Preparation, at: usize) -> bool {
    let lists = |word: &String| word.contains(USERS_FILE);
    words(preparation, at).is_some_and(|words| words.iter().any(lists))
}

fn words(preparation: &Preparation, at: usize) -> Option<&[String]> {
    match preparation.actions().nth(at)? {
        Action::Command(words) => Some(words),
        Action::Request(_) => None,
    }
}
