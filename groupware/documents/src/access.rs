//! Access to a database by users other than its owner.
//!
//! An owner grants a database to named users or to all signed-in users (`*`). *Readers* read all of
//! it. *Authors* read all of it, add documents, and change or delete their own. Without a grant, a
//! database can't be distinguished from a missing one. Uploads in chunks, grants, and the list of
//! databases stay the owner's.
//!
//! A grant applies to the user who has the name at that time: a user registered under it later gets
//! no access, and isn't listed as granted. Repeating the grant doesn't change that: a name that was
//! in it before keeps its time.

use std::collections::{BTreeMap, BTreeSet};

use groupware_store::{Snapshot, StoreError};
use serde::{Deserialize, Serialize};

use crate::{DatabaseName, Document, DocumentError, Principal, Reason, keys, limits};

/// Stands for all signed-in users.
const EVERYBODY: &str = "*";

/// The users with access to a database.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Access {
    #[serde(default)]
    readers: BTreeSet<String>,
    #[serde(default)]
    authors: BTreeSet<String>,
}

/// Returns the time of a user's registration, seconds since 1970; `None` if there is no such user.
pub type Registered<'a> = &'a dyn Fn(&str) -> Result<Option<i64>, StoreError>;

/// The stored form: with the time of the grant.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Granted {
    at: i64,
    to: Access,
    /// The times of the names that were in the grant before this one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    earlier: BTreeMap<String, i64>,
}

impl Access {
    /// Parses `{"readers": […], "authors": […]}`.
    ///
    /// # Errors
    /// 400 if it is invalid, or names too many; 413 for a body that is too large.
    pub fn parse(body: &[u8]) -> Result<Self, DocumentError> {
        if body.len() > limits::ACCESS_BYTES {
            return Err(DocumentError::refused(
                Reason::TooLarge,
                "The body is too large.",
            ));
        }
        // An array of lists would parse as well, and an empty one would revoke everything.
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

    /// The named users.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let names = self.readers.iter().chain(&self.authors);
        names.map(String::as_str).filter(|name| *name != EVERYBODY)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.readers.is_empty() && self.authors.is_empty()
    }

    fn has_name(&self, name: &str) -> bool {
        self.readers.contains(name) || self.authors.contains(name)
    }
}

impl Granted {
    fn has(&self, names: &BTreeSet<String>, who: Principal<'_>) -> bool {
        let is_named = || names.contains(who.user) && who.since <= self.moment(who.user);
        names.contains(EVERYBODY) || is_named()
    }

    /// Returns the time at which a name got access.
    fn moment(&self, name: &str) -> i64 {
        self.earlier.get(name).copied().unwrap_or(self.at)
    }

    /// Returns true if the name has no user any more, or a user other than the one who got access.
    fn has_lapsed(&self, name: &str, registered: Registered<'_>) -> Result<bool, StoreError> {
        let is_same = |since| since <= self.moment(name);
        Ok(name != EVERYBODY && !registered(name)?.is_some_and(is_same))
    }

    /// Returns the names that have not lapsed.
    pub(crate) fn living(&self, registered: Registered<'_>) -> Result<Access, StoreError> {
        let living = |names: &BTreeSet<String>| {
            let mut living = BTreeSet::new();
            for name in names {
                if !self.has_lapsed(name, registered)? {
                    living.insert(name.clone());
                }
            }
            Ok::<_, StoreError>(living)
        };
        Ok(Access {
            readers: living(&self.to.readers)?,
            authors: living(&self.to.authors)?,
        })
    }

    /// Returns the grant that replaces this one by the names in `to`.
    ///
    /// # Errors
    /// 409 for a lapsed name: the client has read it when it named another user; errors of the store.
    pub(crate) fn followed_by(
        &self,
        (to, now): (Access, i64),
        registered: Registered<'_>,
    ) -> Result<Self, DocumentError> {
        let kept = || to.names().filter(|name| self.to.has_name(name));
        for name in kept() {
            if self.has_lapsed(name, registered)? {
                let message = format!(
                    "{name} is another user than the one who was granted this database: \
                     leave the name out first, then grant it anew."
                );
                return Err(DocumentError::refused(Reason::Conflict, message));
            }
        }
        let earlier = kept().map(|name| (name.to_owned(), self.moment(name)));
        let earlier = earlier.collect();
        Ok(Self {
            at: now,
            to,
            earlier,
        })
    }
}

/// The rights of a user for a database.
enum Right {
    None,
    Read,
    Add,
}

fn right(
    snapshot: &dyn Snapshot,
    who: Principal<'_>,
    database: &DatabaseName,
) -> Result<Right, DocumentError> {
    if who.is_owner() {
        return Ok(Right::Add);
    }
    Ok(match load(snapshot, who.mailbox, database)? {
        Some((granted, _)) if granted.has(&granted.to.authors, who) => Right::Add,
        Some((granted, _)) if granted.has(&granted.to.readers, who) => Right::Read,
        _ => Right::None,
    })
}

/// Checks that the user may read a database.
pub(crate) fn may_read(
    snapshot: &dyn Snapshot,
    who: Principal<'_>,
    database: &DatabaseName,
) -> Result<(), DocumentError> {
    match right(snapshot, who, database)? {
        Right::Add | Right::Read => Ok(()),
        Right::None => Err(stranger()),
    }
}

/// Checks that the user may add documents to a database.
///
/// # Errors
/// 403 for all others; errors of the store.
pub fn may_add(
    snapshot: &dyn Snapshot,
    who: Principal<'_>,
    database: &DatabaseName,
) -> Result<(), DocumentError> {
    match right(snapshot, who, database)? {
        Right::Add => Ok(()),
        Right::Read => Err(DocumentError::forbidden(
            "You may read this database, not write to it.",
        )),
        Right::None => Err(stranger()),
    }
}

/// Checks that the user may change or delete a document: the owner, and the author who added it.
/// Requires [`may_add`].
pub(crate) fn may_change(who: Principal<'_>, document: &Document) -> Result<(), DocumentError> {
    let is_author = document.author.as_deref() == Some(who.user) && who.since <= document.created;
    match who.is_owner() || is_author {
        true => Ok(()),
        false => Err(DocumentError::forbidden(
            "This document was added by somebody else.",
        )),
    }
}

pub(crate) fn owner_only(who: Principal<'_>) -> Result<(), DocumentError> {
    match who.is_owner() {
        true => Ok(()),
        false => Err(stranger()),
    }
}

/// Returns the revision of the grant that a decision depends on.
///
/// # Errors
/// 403 if there is none.
pub(crate) fn grant_revision(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    database: &DatabaseName,
) -> Result<u64, DocumentError> {
    let granted = load(snapshot, mailbox, database)?;
    granted.map(|(_, revision)| revision).ok_or_else(stranger)
}

fn stranger() -> DocumentError {
    DocumentError::forbidden("This database belongs to another user.")
}

pub(crate) fn load(
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

#[cfg(test)]
mod tests {
    use groupware_ids::ContentHash;
    use groupware_store::{Batch, CommitError, Store, StoreOptions};

    use super::*;
    use crate::{
        Context, Decision, Fields, FileName, ItemName, ItemPath, NewAttachment, Unid, grant,
    };

    fn granted(text: &str) -> Granted {
        let to = Access::parse(text.as_bytes()).unwrap();
        let earlier = BTreeMap::new();
        let at = 100;
        Granted { at, to, earlier }
    }

    fn who(user: &str, since: i64) -> Principal<'_> {
        let mailbox = "ada";
        Principal {
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
    fn a_name_that_is_granted_again_keeps_its_moment() {
        // The stored form before names had their own times.
        let stored = r#"{"at":100,"to":{"readers":["bob","eve"],"authors":["*"]}}"#;
        let old: Granted = serde_json::from_str(stored).unwrap();
        let follow = |old: &Granted, text: &str, registered: Registered<'_>| {
            let to = Access::parse(text.as_bytes()).unwrap();
            old.followed_by((to, 200), registered)
        };
        let bob_is_new = |name: &str| Ok(Some(if name == "bob" { 150 } else { 0 }));
        let next = follow(&old, r#"{"authors":["eve","joe"]}"#, &bob_is_new).unwrap();
        assert_eq!((next.moment("eve"), next.moment("joe")), (100, 200));
        let refused = follow(&old, r#"{"readers":["bob","eve"]}"#, &bob_is_new);
        assert_eq!(refused.unwrap_err().status(), 409);
        let next = follow(&old, r#"{"readers":["bob"]}"#, &|_| Ok(Some(100))).unwrap();
        assert!(!next.has(&next.to.readers, who("bob", 150)));
        // Once removed, the name stands for its current user.
        let next = follow(&next, r#"{"readers":["eve"]}"#, &bob_is_new).unwrap();
        let next = follow(&next, r#"{"readers":["bob"]}"#, &bob_is_new).unwrap();
        assert!(next.has(&next.to.readers, who("bob", 150)));

        let shown = |registered: Registered<'_>| {
            let old: Granted = serde_json::from_str(stored).unwrap();
            let to = old.living(registered).unwrap();
            let names: Vec<_> = to.readers.into_iter().chain(to.authors).collect();
            names.join(" ")
        };
        assert_eq!(shown(&|_| Ok(Some(100))), "bob eve *");
        assert_eq!(shown(&bob_is_new), "eve *");
        assert_eq!(shown(&|_| Ok(None)), "*");
    }

    /// The decision for a user.
    fn decided(
        store: &Store,
        who: Principal<'_>,
        decide: &dyn Fn(&Context<'_>) -> Result<Decision<()>, DocumentError>,
    ) -> Batch {
        let made = store.read(|snapshot| {
            decide(&Context {
                snapshot,
                who,
                now: 100,
                bits: 7,
                quota_bytes: u64::MAX,
            })
        });
        made.unwrap().batch
    }

    /// All changes by an author of the document created with the bits 7.
    fn all_changes(store: &Store, database: &DatabaseName, file: &NewAttachment) -> Vec<Batch> {
        let place = ItemPath {
            database: database.clone(),
            unid: Unid::from_bits(7),
            item: file.item.clone(),
        };
        let (at, fields) = ((database, &place.unid), &Fields::parse(b"{}").unwrap());
        let bob = |decide: &dyn Fn(&Context<'_>) -> Result<Decision<()>, DocumentError>| {
            decided(store, who("bob", 0), decide)
        };
        vec![
            bob(&|context| {
                create(
                    &Context {
                        bits: 8,
                        ..*context
                    },
                    database,
                )
            }),
            bob(&|context| crate::replace(context, at, fields, &crate::Seen::default())),
            bob(&|context| crate::patch(context, at, fields, &crate::Seen::default())),
            bob(&|context| attach(context, database, file)),
            bob(&|context| crate::detach(context, &place, &file.name, &crate::Seen::default())),
            bob(&|context| crate::delete(context, at, &crate::Seen::default())),
        ]
    }

    fn create(
        context: &Context<'_>,
        database: &DatabaseName,
    ) -> Result<Decision<()>, DocumentError> {
        let made = crate::create(context, database, Fields::parse(b"{}").unwrap())?;
        let (batch, outcome) = (made.batch, ());
        Ok(Decision { batch, outcome })
    }

    fn attach(
        context: &Context<'_>,
        database: &DatabaseName,
        file: &NewAttachment,
    ) -> Result<Decision<()>, DocumentError> {
        let at = (database, &Unid::from_bits(7));
        let made = crate::attach(
            context,
            at,
            std::slice::from_ref(file),
            &crate::Seen::default(),
        )?;
        let (batch, outcome) = (made.batch, ());
        Ok(Decision { batch, outcome })
    }

    #[test]
    fn a_change_fails_once_its_grant_is_withdrawn() {
        let store = Store::memory(StoreOptions::default()).unwrap();
        let database = &DatabaseName::parse("talk").unwrap();
        let allow = |text: &str| {
            let to = Access::parse(text.as_bytes()).unwrap();
            let granted = decided(&store, Principal::owner("ada"), &|context| {
                grant(context, database, to.clone(), &|_| Ok(Some(0)))
            });
            store.commit_blocking(granted).unwrap();
        };
        let file = NewAttachment {
            item: ItemName::parse("Body").unwrap(),
            name: FileName::parse("a").unwrap(),
            media_type: String::new(),
            bytes: 1,
            hash: ContentHash::of(b"x"),
            placed: groupware_ids::Placed::InFile,
        };
        allow(r#"{"authors":["bob"]}"#);
        let bob = who("bob", 0);
        let made = decided(&store, bob, &|context| create(context, database));
        store.commit_blocking(made).unwrap();
        let made = decided(&store, bob, &|context| attach(context, database, &file));
        store.commit_blocking(made).unwrap();
        let late = all_changes(&store, database, &file);
        allow("{}");
        for batch in late {
            let outcome = store.commit_blocking(batch);
            assert!(
                matches!(outcome, Err(CommitError::Conflict { .. })),
                "{outcome:?}"
            );
        }
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
