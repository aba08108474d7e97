//! Who may use a database besides its owner.
//!
//! An owner grants a database to named users or to everybody who is signed in (`*`). *Readers* read
//! all of it. *Authors* read all of it, add documents, and change or delete those that they added.
//! Without a grant a database can't be told from one that isn't there. Uploads in chunks, grants,
//! and the list of databases stay the owner's.
//!
//! A grant is for whoever has the name when it is given: a user who is registered under it later has
//! no part in it.

use std::collections::BTreeSet;

use groupware_store::Snapshot;
use serde::{Deserialize, Serialize};

use crate::mailbox::Changes;
use crate::{Context, DatabaseName, Decision, Document, DocumentError, keys, limits};

/// Stands for everybody who is signed in.
const EVERYBODY: &str = "*";

/// Who asks, and whose database is asked for. Names are in lower case.
#[derive(Debug, Clone, Copy)]
pub struct Who<'a> {
    /// The signed-in user.
    pub user: &'a str,
    /// When the user was registered, seconds since 1970.
    pub since: i64,
    /// The owner: the name of the partition and in paths.
    pub mailbox: &'a str,
}

impl<'a> Who<'a> {
    /// The owner, or the server on the owner's behalf.
    pub fn owner(mailbox: &'a str) -> Self {
        Self {
            user: mailbox,
            since: 0,
            mailbox,
        }
    }

    /// Whether the database is the user's own.
    pub fn is_owner(self) -> bool {
        self.user == self.mailbox
    }
}

/// Whom a database is granted to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Access {
    #[serde(default)]
    readers: BTreeSet<String>,
    #[serde(default)]
    authors: BTreeSet<String>,
}

/// As stored: with the moment of the grant.
#[derive(Debug, Serialize, Deserialize)]
struct Granted {
    at: i64,
    to: Access,
}

impl Access {
    /// Reads `{"readers": […], "authors": […]}`.
    ///
    /// # Errors
    /// 400 if it isn't that, or names too many; 413 for a body that is too large.
    pub fn parse(body: &[u8]) -> Result<Self, DocumentError> {
        if body.len() > limits::ACCESS_BYTES {
            return Err(DocumentError::refused(413, "The body is too large."));
        }
        // An array of lists could be read as well, and none would withdraw all.
        if body.trim_ascii_start().first() != Some(&b'{') {
            let message = "A grant is a JSON object of readers and authors.";
            return Err(DocumentError::bad_request(message));
        }
        let read: Self = serde_json::from_slice(body).map_err(|error| {
            DocumentError::bad_request(format!("The body can't be read: {error}."))
        })?;
        let lower = |names: BTreeSet<String>| -> BTreeSet<String> {
            let names = names.into_iter();
            names.map(|name| name.to_ascii_lowercase()).collect()
        };
        let (readers, authors) = (lower(read.readers), lower(read.authors));
        if readers.len().max(authors.len()) > limits::GRANTED_NAMES {
            return Err(DocumentError::bad_request(format!(
                "At most {} users can be named.",
                limits::GRANTED_NAMES
            )));
        }
        Ok(Self { readers, authors })
    }

    /// The users who are named.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let names = self.readers.iter().chain(&self.authors);
        names.map(String::as_str).filter(|name| *name != EVERYBODY)
    }

    fn is_empty(&self) -> bool {
        self.readers.is_empty() && self.authors.is_empty()
    }
}

impl Granted {
    fn has(&self, names: &BTreeSet<String>, who: Who<'_>) -> bool {
        names.contains(EVERYBODY) || (who.since <= self.at && names.contains(who.user))
    }
}

/// Whom a database is granted to, as JSON, for its owner.
///
/// # Errors
/// 403 for anybody else; the store's.
pub fn access(
    snapshot: &dyn Snapshot,
    who: Who<'_>,
    database: &DatabaseName,
) -> Result<Vec<u8>, DocumentError> {
    owner_only(who)?;
    let granted = load(snapshot, who.mailbox, database)?;
    let to = granted.map(|(granted, _)| granted.to).unwrap_or_default();
    Ok(serde_json::to_vec(&to).expect("names always serialise to memory"))
}

/// Grants a database to these users and to nobody else; to none of them, it is the owner's alone.
///
/// # Errors
/// 403 for anybody but the owner; 507 if too many databases are granted.
pub fn grant(
    context: &Context<'_>,
    database: &DatabaseName,
    to: Access,
) -> Result<Decision<()>, DocumentError> {
    owner_only(context.who)?;
    let (snapshot, mailbox) = (context.snapshot, context.who.mailbox);
    let revision = load(snapshot, mailbox, database)?.map(|(_, revision)| revision);
    let mut changes = Changes::new(context)?;
    let key = keys::access(database);
    if !to.is_empty() {
        if revision.is_none() && count(snapshot, mailbox)? >= limits::DATABASES {
            let message = "There are too many databases.";
            return Err(DocumentError::refused(507, message));
        }
        let granted = Granted {
            at: context.now,
            to,
        };
        let value = serde_json::to_vec(&granted).expect("names always serialise to memory");
        changes.put(key, revision, Some(value));
    } else if revision.is_some() {
        changes.put(key, revision, None);
    }
    Ok(Decision {
        batch: changes.into_batch(),
        outcome: (),
    })
}

/// Passes those who may read a database.
pub(crate) fn may_read(
    snapshot: &dyn Snapshot,
    who: Who<'_>,
    database: &DatabaseName,
) -> Result<(), DocumentError> {
    if who.is_owner() {
        return Ok(());
    }
    match load(snapshot, who.mailbox, database)? {
        Some((granted, _))
            if granted.has(&granted.to.readers, who) || granted.has(&granted.to.authors, who) =>
        {
            Ok(())
        }
        _ => Err(stranger()),
    }
}

/// Passes those who may add documents to a database.
///
/// # Errors
/// 403 for anybody else; the store's.
pub fn may_add(
    snapshot: &dyn Snapshot,
    who: Who<'_>,
    database: &DatabaseName,
) -> Result<(), DocumentError> {
    if who.is_owner() {
        return Ok(());
    }
    match load(snapshot, who.mailbox, database)? {
        Some((granted, _)) if granted.has(&granted.to.authors, who) => Ok(()),
        Some((granted, _)) if granted.has(&granted.to.readers, who) => Err(
            DocumentError::forbidden("You may read this database, not write to it."),
        ),
        _ => Err(stranger()),
    }
}

/// Passes those who may change or delete a document: the owner, and the author who added it. Comes
/// after [`may_add`].
pub(crate) fn may_change(who: Who<'_>, document: &Document) -> Result<(), DocumentError> {
    let is_author = document.author.as_deref() == Some(who.user) && who.since <= document.created;
    match who.is_owner() || is_author {
        true => Ok(()),
        false => Err(DocumentError::forbidden(
            "This document was added by somebody else.",
        )),
    }
}

pub(crate) fn owner_only(who: Who<'_>) -> Result<(), DocumentError> {
    match who.is_owner() {
        true => Ok(()),
        false => Err(stranger()),
    }
}

fn stranger() -> DocumentError {
    DocumentError::forbidden("This database belongs to another user.")
}

fn load(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    database: &DatabaseName,
) -> Result<Option<(Granted, u64)>, DocumentError> {
    let key = keys::access(database);
    let Some(record) = snapshot.get(mailbox, &key)? else {
        return Ok(None);
    };
    let granted = serde_json::from_slice(&record.value)
        .map_err(|error| DocumentError::corrupt(&key, error))?;
    Ok(Some((granted, record.revision)))
}

/// The databases that are granted to anybody, counted up to the limit.
fn count(snapshot: &dyn Snapshot, mailbox: &str) -> Result<usize, DocumentError> {
    let (from, to) = keys::all_access();
    let mut count = 0;
    snapshot.scan(mailbox, &from, Some(&to), limits::DATABASES, &mut |_, _| {
        count += 1;
        std::ops::ControlFlow::Continue(())
    })?;
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn granted(text: &str) -> Granted {
        let to = Access::parse(text.as_bytes()).unwrap();
        Granted { at: 100, to }
    }

    fn who(user: &str, since: i64) -> Who<'_> {
        let mailbox = "ada";
        Who {
            user,
            since,
            mailbox,
        }
    }

    #[test]
    fn a_name_is_whoever_had_it_when_it_was_granted() {
        let named = granted(r#"{"readers": ["Bob"]}"#);
        let check = |user, since, expected| {
            let has = named.has(&named.to.readers, who(user, since));
            assert_eq!(has, expected, "{user} since {since}");
        };
        check("bob", 100, true);
        check("bob", 101, false);
        check("eve", 1, false);
        let open = granted(r#"{"authors": ["*"]}"#);
        assert!(open.has(&open.to.authors, who("eve", 101)));
        assert!(!open.has(&open.to.readers, who("eve", 1)));
    }

    #[test]
    fn an_author_has_what_was_added_under_the_name_since() {
        let document = |author: Option<&str>| Document {
            created: 100,
            modified: 100,
            author: author.map(str::to_owned),
            fields: crate::Fields::default(),
            attachments: Vec::new(),
        };
        let may = |asks, author| may_change(asks, &document(author)).is_ok();
        assert!(may(who("ada", 0), None) && may(who("ada", 0), Some("bob")));
        assert!(may(who("bob", 100), Some("bob")));
        assert!(!may(who("bob", 101), Some("bob")));
        assert!(!may(who("bob", 0), None) && !may(who("bob", 0), Some("eve")));
    }

    #[test]
    fn bodies_that_grant_nothing_clear_are_refused() {
        let status =
            |body: &str| Access::parse(body.as_bytes()).map_or_else(|e| e.status(), |_| 200);
        for (body, expected) in [
            ("{}", 200),
            (r#"{"readers":["*"],"authors":["a"]}"#, 200),
            ("", 400),
            ("[]", 400),
            (r#"{"owners":["a"]}"#, 400),
            (r#"{"readers":"a"}"#, 400),
        ] {
            assert_eq!(status(body), expected, "{body}");
        }
        let many = |count: usize| {
            let names: Vec<_> = (0..count).map(|n| format!("\"u{n}\"")).collect();
            format!("{{\"readers\":[{}]}}", names.join(","))
        };
        assert_eq!((status(&many(100)), status(&many(101))), (200, 400));
        assert_eq!(status(&many(10_000)), 413);
    }
}
