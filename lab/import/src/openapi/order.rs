//! The order of operations, and the ids for them: nothing is changed or removed that the session didn't create.

use std::collections::HashMap;

use super::operation::Operation;

/// The source of an id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Id {
    /// The expression.
    pub(super) code: String,
    /// Created by this session.
    pub(super) is_own: bool,
}

/// Ids of items, by the path of their collection.
#[derive(Debug, Default)]
pub(super) struct Made(HashMap<String, Vec<Id>>);

impl Made {
    pub(super) fn add(&mut self, collection: &str, id: Id) {
        self.0.entry(collection.to_owned()).or_default().push(id);
    }

    /// The best id of a collection's item: the session's own, or else one of a list.
    pub(super) fn of(&self, collection: &str) -> Option<&Id> {
        let ids = self.0.get(collection)?;
        ids.iter().find(|id| id.is_own).or(ids.first())
    }
}

/// Creates first, then lists and reads, then changes, and removes last: deeper items are created later and removed
/// earlier.
pub(super) fn ordered<'v>(
    mut all: Vec<Operation<'v>>,
    said: &mut Vec<String>,
) -> Vec<Operation<'v>> {
    all.sort_by_key(|operation| {
        let depth = operation.path.matches('/').count();
        let names = operation.path_names().len();
        // A collection precedes its items, and those precede their content.
        match operation.method.as_str() {
            "GET" if names == 0 => (0, depth),
            "POST" => (1, names * 100 + depth),
            "GET" => (2, names * 100 + depth),
            "DELETE" => (4, usize::MAX - names * 100 - depth),
            _ => (3, names * 100 + depth),
        }
    });
    let can_be_made = |operation: &Operation<'_>| {
        let collection = operation.collection()?;
        let made = all
            .iter()
            .any(|one| one.method == "POST" && one.path == collection);
        Some(made)
    };
    let is_safe: Vec<bool> = all
        .iter()
        .map(|operation| match operation.method.as_str() {
            "GET" | "POST" => true,
            _ => can_be_made(operation).unwrap_or(false),
        })
        .collect();
    let mut kept = Vec::with_capacity(all.len());
    for (operation, is_safe) in all.into_iter().zip(is_safe) {
        match is_safe {
            true => kept.push(operation),
            false => said.push(format!(
                "{} left out: no operation makes what it would change, and others' data is not touched",
                operation.title()
            )),
        }
    }
    kept
}
