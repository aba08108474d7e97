//! The stored form of accounts: it stays the same byte for byte, and older forms are still read.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use groupware_mail::{
    Context, Decision, Folder, Ids, ListQuery, MailError, Marking, RoutedMessage, Unid,
    all_folders, bytes, drafts, folders, keywords, list, list_json, mark, mark_as, message_json,
    move_to, receive, require, send,
};
use groupware_people::Directory;
use groupware_store::{Batch, Store, StoreError, StoreOptions};
use plimsoll_tests::stored;

/// 2026-01-01T00:00:00Z.
const NOW_US: i64 = 1_767_225_600_000_000;

const PARTITIONS: [&str; 3] = ["$mail", "ada", "bob"];

/// The size from which a message is shared.
const SHARED_BYTES: usize = groupware_mail::limits::SHARED_BYTES;

struct Users;

impl Directory for Users {
    fn user(&self, address: &str) -> Result<Option<String>, StoreError> {
        let name = address.strip_suffix("@localhost").unwrap_or(address);
        Ok(PARTITIONS[1..].contains(&name).then(|| name.to_owned()))
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

struct World {
    store: Store,
    changes: u32,
}

impl World {
    /// Decides for ada, and commits.
    fn change(&mut self, decide: impl FnOnce(&Context<'_>) -> Result<Decision, MailError>) -> Unid {
        self.changes += 1;
        let decided = self.store.read(|snapshot| {
            decide(&Context {
                snapshot,
                directory: &Users,
                mailbox: "ada",
                now_us: NOW_US + i64::from(self.changes) * 1_000_000,
                ids: Ids::from_random(u128::from(self.changes) << 8),
                quota_bytes: None,
                full: &BTreeSet::new(),
            })
        });
        let decision = decided.unwrap();
        self.store.commit_blocking(decision.batch).unwrap();
        decision.made.unwrap_or(Unid::new(0, 0))
    }
}

/// Accounts with a message in each kind of folder; one is shared, one read, one has attachments.
fn world() -> World {
    let mut world = World {
        store: Store::memory(StoreOptions::default()).unwrap(),
        changes: 0,
    };
    let both: BTreeSet<String> = ["ada", "bob"].map(str::to_owned).into();
    let message = "From: Ada L <ada@localhost>\r\nTo: bob@localhost, C \"D\" <c@x>\r\nBcc: ada\r\n\
        Subject: =?utf-8?q?H=C3=A9?=\r\nDate: Mon, 05 Jan 2026 10:00:00 +0100\r\n\
        Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\ntext\r\n--b--\r\n";
    let parcel = RoutedMessage {
        message: message.into(),
        to: both.clone(),
    };
    world.change(|context| send(context, &parcel));
    let large = format!("Subject: large\r\n\r\n{}", "x".repeat(SHARED_BYTES));
    let trace = "Received: by localhost\r\n";
    let shared = world.change(|context| receive(context, &both, trace, large.as_bytes()));
    let broken = b"no head\xff\0\n";
    let kept = world.change(|context| receive(context, &both, "", broken));
    let draft = "From: ada\r\nSubject: draft\r\n\r\nlater".into();
    world.change(|context| drafts::save(context, &draft));
    let own = world.change(|context| folders::create(context, "Own \"é\""));
    world.change(|context| mark(context, &[shared], true));
    world.change(|context| move_to(context, &[kept], Folder::Own(own)));
    let marking = Marking {
        answered: Some(true),
        keywords: Some(["work", "$Junk"].map(str::to_owned).into()),
        ..Marking::default()
    };
    world.change(|context| mark_as(context, &[kept], &marking));
    world
}

/// All records of these partitions.
fn rows(store: &Store, partitions: &[&str]) -> Vec<stored::Row> {
    let mut rows = Vec::new();
    let read: Result<(), StoreError> = store.read(|snapshot| {
        for partition in partitions {
            snapshot.browse(partition, b"", None, usize::MAX, &mut |key, value| {
                rows.push(((*partition).to_owned(), key.to_vec(), value.to_vec()));
                ControlFlow::Continue(())
            })?;
        }
        Ok(())
    });
    read.unwrap();
    rows
}

/// A store with the records of a snapshot.
fn restored(snapshot: &str) -> Store {
    let store = Store::memory(StoreOptions::default()).unwrap();
    let mut batch = Batch::new();
    for (partition, key, value) in stored::rows(snapshot) {
        batch.put(partition, key, value);
    }
    store.commit_blocking(batch).unwrap();
    store
}

#[test]
fn what_is_stored_stays_as_it_is() {
    let mut rows = rows(&world().store, &PARTITIONS);
    for (_, _, value) in &mut rows {
        // The beginning of the shared body is enough.
        value.truncate(2000);
    }
    insta::assert_snapshot!("records", stored::lines(&rows));
}

#[test]
fn what_was_stored_is_read() {
    let store = restored(include_str!("snapshots/suite__stored__records.snap"));
    insta::assert_snapshot!("read", read(&store));
}

/// Written by a version without numbers.
#[test]
fn what_was_stored_without_numbers_is_read() {
    let store = restored(include_str!("snapshots/records_without_numbers.snap"));
    insta::assert_snapshot!("read_without_numbers", read(&store));
}

/// The whole content of the accounts, as read.
fn read(store: &Store) -> String {
    let read: Result<String, MailError> = store.read(|snapshot| {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap() + "\n";
        let mut read = String::new();
        for mailbox in ["ada", "bob"] {
            for line in all_folders(snapshot, mailbox)? {
                read += &format!("{mailbox} {line:?}\n");
                let query = ListQuery::parse([])?;
                read += &text(list_json(snapshot, mailbox, line.folder, &query)?.body);
                for listed in list(snapshot, mailbox, line.folder, &query)?.items {
                    let held = require(snapshot, mailbox, listed.unid)?;
                    let message = bytes(snapshot, mailbox, &held)?;
                    let beginning = &message[..message.len().min(400)];
                    let words = keywords(snapshot, mailbox, listed.unid)?;
                    read += &text(message_json(mailbox, (&held, &words), beginning, true));
                }
            }
        }
        Ok(read)
    });
    read.unwrap()
}
