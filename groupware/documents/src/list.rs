//! The lists: databases, and a database's documents in the order of their last change.

use std::ops::ControlFlow;

use groupware_store::Snapshot;

use crate::time::parse_date;
use crate::{DatabaseName, DocumentError, Principal, access, keys, limits, usage};

/// The requested part of a list. Unknown parameters are ignored, as in Domino; known ones are
/// parsed strictly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListQuery {
    start: usize,
    count: usize,
    since: Option<i64>,
}

impl ListQuery {
    /// Parses `start` and `count`, or `ps` and `page`, and `since`.
    ///
    /// # Errors
    /// 400 if one is invalid.
    pub fn parse<'q>(
        pairs: impl IntoIterator<Item = (&'q str, &'q str)>,
    ) -> Result<Self, DocumentError> {
        let (mut start, mut count, mut page, mut since) = (None, None, None, None);
        for (name, value) in pairs {
            match name {
                "start" => start = Some(number(name, value, usize::MAX)?),
                "count" | "ps" => count = Some(number(name, value, limits::PAGE)?),
                "page" => page = Some(number(name, value, usize::MAX)?),
                "since" => since = Some(parse_date(value).ok_or_else(|| invalid(name))?),
                _ => {}
            }
        }
        let count = count.unwrap_or(limits::DEFAULT_PAGE);
        let start = match (start, page) {
            (Some(start), _) => start,
            (None, Some(page)) => page.saturating_mul(count),
            (None, None) => 0,
        };
        Ok(Self {
            start,
            count,
            since,
        })
    }
}

fn number(name: &str, text: &str, most: usize) -> Result<usize, DocumentError> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(invalid(name));
    }
    let number: usize = text.parse().map_err(|_| invalid(name))?;
    Ok(number.min(most))
}

fn invalid(name: &str) -> DocumentError {
    DocumentError::bad_request(format!("The parameter {name} can't be read."))
}

impl ListQuery {
    /// Returns true if the page starts so late in the list that it should be read in the background pool.
    pub fn is_long(&self) -> bool {
        self.start > limits::SKIPPED_AT_ONCE
    }
}

/// A page of the list of documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// A JSON array.
    pub body: Vec<u8>,
    /// The value of `Content-Range`: `items 0-9/29`; the total of a list with `since` is unknown.
    pub range: String,
}

/// Returns the documents of a database, in the order of their last change.
///
/// # Errors
/// 403 if the user may not read the database; errors of the store.
pub fn list(
    snapshot: &dyn Snapshot,
    who: Principal<'_>,
    database: &DatabaseName,
    query: &ListQuery,
) -> Result<Page, DocumentError> {
    access::may_read(snapshot, who, database)?;
    let mailbox = who.mailbox;
    let total = usage::load(snapshot, mailbox)?.usage;
    let total = total.documents.get(database.as_str()).copied().unwrap_or(0);
    let from = keys::lines_from(database, query.since.unwrap_or(i64::MIN));
    let to = keys::lines_end(database);
    let mut body = vec![b'['];
    let (mut seen, mut found) = (0, 0);
    let limit = match (query.start as u64) < total {
        true => query.start.saturating_add(query.count),
        false => 0,
    };
    snapshot.scan(mailbox, &from, Some(&to), limit, &mut |_, line| {
        seen += 1;
        if seen > query.start {
            if found > 0 {
                body.push(b',');
            }
            body.extend_from_slice(&line.value);
            found += 1;
        }
        ControlFlow::Continue(())
    })?;
    body.push(b']');
    let total = match query.since {
        None => total.to_string(),
        Some(_) => "*".to_owned(),
    };
    let range = match found {
        0 => format!("items */{total}"),
        _ => format!("items {}-{}/{total}", query.start, query.start + found - 1),
    };
    Ok(Page { body, range })
}

/// Returns the databases that have documents, as a JSON array.
///
/// # Errors
/// Errors of the store.
pub fn databases(snapshot: &dyn Snapshot, mailbox: &str) -> Result<Vec<u8>, DocumentError> {
    #[derive(serde::Serialize)]
    struct Line<'a> {
        #[serde(rename = "@title")]
        title: &'a str,
        #[serde(rename = "@filepath")]
        path: String,
        #[serde(rename = "@href")]
        href: String,
        documents: u64,
    }
    let usage = usage::load(snapshot, mailbox)?.usage;
    let lines = usage.documents.iter().map(|(name, count)| Line {
        title: name,
        path: format!("docs/{mailbox}/{name}"),
        href: format!("/docs/{mailbox}/{name}/api/data/documents"),
        documents: *count,
    });
    let lines: Vec<_> = lines.collect();
    Ok(serde_json::to_vec(&lines).expect("a list always serialises to memory"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters() {
        let parse =
            |pairs: &[(&'static str, &'static str)]| ListQuery::parse(pairs.iter().copied());
        let query = |start, count| ListQuery {
            start,
            count,
            since: None,
        };
        assert_eq!(parse(&[]).unwrap(), query(0, 10));
        assert_eq!(
            parse(&[("start", "7"), ("count", "3")]).unwrap(),
            query(7, 3)
        );
        assert_eq!(
            parse(&[("page", "2"), ("ps", "50")]).unwrap(),
            query(100, 50)
        );
        assert_eq!(parse(&[("count", "99999")]).unwrap(), query(0, 1000));
        assert_eq!(parse(&[("other", "x")]).unwrap(), query(0, 10));
        let last = usize::MAX.to_string();
        let huge = ListQuery::parse([("page", &*last), ("ps", "50")]).unwrap();
        assert_eq!(huge.start, usize::MAX);
        for (name, value) in [
            ("start", "-1"),
            ("count", "x"),
            ("since", "now"),
            ("ps", "1e3"),
        ] {
            assert_eq!(parse(&[(name, value)]).unwrap_err().status(), 400, "{name}");
        }
    }
}
