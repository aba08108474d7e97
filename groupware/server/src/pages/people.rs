//! Completes names, for the script of fields that take people.

use axum::Json;
use axum::extract::{Query, State};
use serde::Deserialize;

use super::visitor::Visitor;
use crate::AppState;

/// As many as a browser's list shows well.
const MOST: usize = 8;

#[derive(Debug, Deserialize)]
pub(super) struct Asked {
    begin: String,
}

pub(super) async fn complete(
    State(state): State<AppState>,
    visitor: Visitor,
    Query(Asked { begin }): Query<Asked>,
) -> Json<Vec<String>> {
    let begin = begin.trim();
    if begin.is_empty() {
        return Json(Vec::new());
    }
    // One more than shown, since the visitor is none of those who are offered.
    let mut names = state.directory().beginning_with(begin, MOST + 1);
    names.retain(|name| &**name != visitor.mailbox());
    names.truncate(MOST);
    Json(names.iter().map(|name| name.to_string()).collect())
}
