//! Fields for people: parsing their text, and completing it for the script.

use axum::Json;
use axum::extract::{Query, State};
use groupware_service::Service;
use serde::Deserialize;

use crate::visitor::SignedIn;

/// The most that a browser's list shows well.
const MOST: usize = 8;
/// Beyond this number of users, a search through their names takes so long that it must not delay other requests.
const MANY: usize = 10_000;

#[derive(Debug, Deserialize)]
pub(crate) struct CompletionQuery {
    begin: String,
}

pub(crate) async fn complete(
    State(service): State<Service>,
    visitor: SignedIn,
    Query(CompletionQuery { begin }): Query<CompletionQuery>,
) -> Json<Vec<String>> {
    let begin = begin.trim();
    if begin.is_empty() {
        return Json(Vec::new());
    }
    // One more than shown, since the visitor is not suggested.
    let (begin, users) = (begin.to_owned(), service.clone());
    // The search visits all names.
    let is_long = service.auth.directory().len() > MANY;
    let names = service.work(visitor.owner.caller(), is_long, move || {
        users.auth.directory().beginning_with(&begin, MOST + 1)
    });
    let mut names = names.await;
    names.retain(|name| &**name != visitor.mailbox());
    names.truncate(MOST);
    Json(names.iter().map(|name| name.to_string()).collect())
}

/// Parses names and addresses of `ann, Bob Baker <bob@localhost>; eve`.
pub(crate) fn entries(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let parts = text.split([',', ';', '\n']).map(split);
    parts.filter(|(_, address)| !address.is_empty())
}

/// Splits `Name <address>`, or an address alone, into name and address.
fn split(part: &str) -> (&str, &str) {
    let part = part.trim();
    match part
        .strip_suffix('>')
        .and_then(|part| part.rsplit_once('<'))
    {
        Some((name, address)) => (name.trim().trim_matches('"').trim(), address.trim()),
        None => ("", part),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_taken_apart() {
        let found: Vec<_> =
            entries(" ann ,, Bob Baker <bob@x.y>;\"Eve\" < eve >\n<dan>, dan>").collect();
        let expected = [
            ("", "ann"),
            ("Bob Baker", "bob@x.y"),
            ("Eve", "eve"),
            ("", "dan"),
            ("", "dan>"),
        ];
        assert_eq!(found, expected);
    }
}
