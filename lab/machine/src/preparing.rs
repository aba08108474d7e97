//! The commands of a preparation, by index. It runs nothing.

use lab_study::{Action, Preparation, USERS_FILE};

/// The words of the command at an index, with this path of the list of users; `None` if there is no such command.
#[must_use]
pub fn command(preparation: &Preparation, at: usize, users_file: &str) -> Option<Vec<String>> {
    let fill = |word: &String| word.replace(USERS_FILE, users_file);
    Some(words(preparation, at)?.iter().map(fill).collect())
}

/// Returns true if the command at an index reads the list of users.
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
