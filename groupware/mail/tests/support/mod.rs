//! Accounts of a few users in a store in memory, with their counters and bodies.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use groupware_mail::{
    Context, Decision, Folder, Found, Ids, Listed, MailError, Unid, all_folders, bytes, counts,
    find, keys, list, used_bytes,
};
use groupware_people::Directory;
use groupware_store::{CommitError, Snapshot, Store, StoreError, StoreOptions, counters};

/// The users.
pub(crate) const USERS: [&str; 3] = ["ann", "bob", "cy"];

pub(crate) struct Users;

impl Directory for Users {
    fn user(&self, address: &str) -> Result<Option<String>, StoreError> {
        let name = address.strip_suffix("@localhost").unwrap_or(address);
        Ok(USERS.contains(&name).then(|| name.to_owned()))
    }

    fn registered(&self, _: &str) -> Result<Option<i64>, StoreError> {
        Ok(Some(0))
    }

    fn email(&self, user: &str) -> String {
        format!("{user}@localhost")
    }

    fn domain(&self) -> &str {
        "localhost"
    }
}

pub(crate) struct World {
    pub(crate) store: Store,
    pub(crate) now_us: i64,
    seed: u128,
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            store: Store::memory(StoreOptions::default()).unwrap(),
            now_us: 1_767_225_600_000_000,
            seed: 1,
        }
    }

    /// Decides on the current state, and commits nothing.
    pub(crate) fn decide(
        &mut self,
        owner: &str,
        decide: impl FnOnce(&Context<'_>) -> Result<Decision, MailError>,
    ) -> Result<Decision, MailError> {
        self.now_us += 1_000_000;
        self.seed = self
            .seed
            .wrapping_mul(0x2545_F491_4F6C_DD1D)
            .wrapping_add(11);
        let ids = Ids::from_random(self.seed);
        self.store.read(|snapshot| {
            decide(&Context {
                snapshot,
                directory: &Users,
                mailbox: owner,
                now_us: self.now_us,
                ids,
                quota_bytes: None,
                full: &BTreeSet::new(),
            })
        })
    }

    pub(crate) fn commit(&self, decision: Decision) -> Result<(), CommitError> {
        match decision.batch.is_empty() {
            true => Ok(()),
            false => self.store.commit_blocking(decision.batch).map(drop),
        }
    }

    /// Decides and commits without concurrency.
    pub(crate) fn change(
        &mut self,
        owner: &str,
        decide: impl FnOnce(&Context<'_>) -> Result<Decision, MailError>,
    ) -> Result<Option<Unid>, MailError> {
        let decision = self.decide(owner, decide)?;
        let made = decision.made;
        self.commit(decision).expect("nobody was in between");
        Ok(made)
    }

    /// All messages of an account by folder, as lists show them.
    pub(crate) fn messages(&self, owner: &str) -> BTreeMap<Folder, Vec<Listed>> {
        let look = |snapshot: &dyn Snapshot| look(snapshot, owner);
        self.store.read(look).unwrap()
    }

    pub(crate) fn unids(&self, owner: &str, folder: Folder) -> Vec<Unid> {
        let mut messages = self.messages(owner);
        let found = messages.remove(&folder).unwrap_or_default();
        found.iter().map(|listed| listed.unid).collect()
    }

    /// Checks the invariants of every state.
    pub(crate) fn check(&self) {
        let check = |snapshot: &dyn Snapshot| {
            let mut held = BTreeMap::new();
            for owner in USERS {
                check_counters(snapshot, owner)?;
                check_bytes(snapshot, owner, &mut held)?;
            }
            check_shared(snapshot, &held)?;
            assert_eq!(found_wrong(snapshot)?, Vec::<String>::new());
            Ok(())
        };
        self.store.read::<_, MailError>(check).unwrap();
    }
}

/// Returns the defects that a check of all accounts finds.
pub(crate) fn found_wrong(snapshot: &dyn Snapshot) -> Result<Vec<String>, MailError> {
    let mut found = Found::default();
    for owner in USERS {
        found.look(snapshot, owner)?;
    }
    found.look_at_shared(snapshot)?;
    Ok(found.wrong)
}

fn look(snapshot: &dyn Snapshot, owner: &str) -> Result<BTreeMap<Folder, Vec<Listed>>, MailError> {
    let query = groupware_mail::ListQuery::parse([("ps", "1000")])?;
    let mut found = BTreeMap::new();
    for line in all_folders(snapshot, owner)? {
        let page = list(snapshot, owner, line.folder, &query)?;
        found.insert(line.folder, page.items);
    }
    Ok(found)
}

/// A folder's counters match a scan, and there are no counters without a folder.
fn check_counters(snapshot: &dyn Snapshot, owner: &str) -> Result<(), MailError> {
    let mut used = 0;
    for (folder, messages) in look(snapshot, owner)? {
        let counted = counts(snapshot, owner, folder)?;
        let unread = messages.iter().filter(|listed| !listed.entry.read).count();
        let size: u64 = messages.iter().map(|listed| listed.entry.size).sum();
        assert_eq!(
            (counted.messages, counted.unread, counted.bytes),
            (messages.len() as u64, unread as u64, size),
            "{owner} {folder}"
        );
        used += size;
    }
    assert_eq!(used_bytes(snapshot, owner)?, used, "{owner}");
    Ok(())
}

/// Each message lies in one folder and has its bytes, and no bytes and no keywords are orphaned.
fn check_bytes(
    snapshot: &dyn Snapshot,
    owner: &str,
    held_bodies: &mut BTreeMap<String, i64>,
) -> Result<(), MailError> {
    let (mut own, mut shared) = (BTreeSet::new(), BTreeSet::new());
    for (folder, messages) in look(snapshot, owner)? {
        for Listed { unid, entry } in messages {
            let held = find(snapshot, owner, unid)?.expect("what is listed is there");
            assert_eq!((held.folder, &held.entry), (folder, &entry));
            let content = bytes(snapshot, owner, &held)?;
            assert_eq!(content.len() as u64, entry.size);
            let is_new = match entry.shared {
                None => own.insert(unid.to_string()),
                Some(body) => {
                    *held_bodies.entry(body.to_string()).or_default() += 1;
                    shared.insert(unid.to_string())
                }
            };
            assert!(is_new, "{unid} lies in two folders");
        }
    }
    assert_eq!(names(snapshot, owner, "m/b/")?, own, "{owner}");
    assert_eq!(names(snapshot, owner, "m/s/")?, shared, "{owner}");
    let mut marked = names(snapshot, owner, "m/k/")?;
    marked.retain(|unid| !own.contains(unid) && !shared.contains(unid));
    assert!(marked.is_empty(), "{owner}: {marked:?}");
    Ok(())
}

/// A shared body exists exactly as long as a message holds it, and its count equals the number of holders.
fn check_shared(snapshot: &dyn Snapshot, held: &BTreeMap<String, i64>) -> Result<(), MailError> {
    let there: BTreeSet<String> = held.keys().cloned().collect();
    assert_eq!(names(snapshot, keys::SHARED, "b/")?, there);
    assert_eq!(names(snapshot, keys::SHARED, "h/")?, there);
    for (body, holders) in held {
        let counter = snapshot.get(keys::SHARED, format!("h/{body}").as_bytes())?;
        let counter = counter.map(|record| counters(&record.value).next().unwrap_or_default());
        assert_eq!(counter, Some(*holders), "{body}");
    }
    Ok(())
}

/// The rest after a prefix in the keys of a partition.
fn names(
    snapshot: &dyn Snapshot,
    partition: &str,
    prefix: &str,
) -> Result<BTreeSet<String>, StoreError> {
    let mut found = BTreeSet::new();
    snapshot.scan(
        partition,
        prefix.as_bytes(),
        None,
        usize::MAX,
        &mut |key, _| match key.strip_prefix(prefix.as_bytes()) {
            Some(name) => {
                found.insert(String::from_utf8_lossy(name).into_owned());
                ControlFlow::Continue(())
            }
            None => ControlFlow::Break(()),
        },
    )?;
    Ok(found)
}
