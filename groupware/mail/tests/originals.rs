//! Originals: a message is read byte for byte as it was stored, from each of its holders, until
//! there are none; and a check reports the damage of a store.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{USERS, World, found_wrong};
use bytes::Bytes;
use groupware_mail::{
    Folder, MailError, Marking, Marks, Reason, RoutedMessage, Stored, Unid, add_and_remove,
    and_mark, bytes, delete, drafts, empty, find, import_once, keywords, keywords_of, limits,
    mark_as, message_json, move_to, receive, send,
};
use groupware_store::{Batch, Snapshot};
use proptest::prelude::*;

/// The trace fields in front of a received message.
const TRACE: &str =
    "Return-Path: <x@example.com>\r\nReceived: from x\r\n\tby localhost;\r\n\tnow\r\n";

/// Bytes that are hard to parse, long enough to be shared or not.
fn message() -> impl Strategy<Value = Vec<u8>> {
    let known: [&[u8]; 14] = [
        b"Subject: =?utf-8?b?!!?= \xff",
        b"From: a@x, \"",
        b"Date: 99 Xyz 99999",
        b"Content-Type: multipart/mixed; boundary=a",
        b"Content-Transfer-Encoding: base64",
        b"--a",
        b"--a--",
        b" folded",
        b"X-\0: \0",
        b"From ",
        b">From x",
        b"..",
        b"no field",
        b"",
    ];
    let line = prop_oneof![
        prop::sample::select(known.to_vec()).prop_map(<[u8]>::to_vec),
        prop::collection::vec(any::<u8>(), 0..40),
    ];
    let ends: [&[u8]; 5] = [b"\r\n", b"\r\n", b"\n", b"\r", b""];
    let lines = prop::collection::vec((line, prop::sample::select(ends.to_vec())), 0..20);
    (lines, any::<bool>()).prop_map(|(lines, is_large)| {
        let mut bytes: Vec<u8> = Vec::new();
        for (line, end) in lines {
            bytes.extend([&line[..], end].concat());
        }
        if is_large {
            bytes.resize(bytes.len() + limits::SHARED_BYTES, 0xe9);
        }
        bytes
    })
}

fn people() -> impl Strategy<Value = BTreeSet<String>> {
    let users = prop::sample::subsequence(USERS.to_vec(), 1..=USERS.len());
    users.prop_map(|users| users.into_iter().map(str::to_owned).collect())
}

/// A message of a user, with its bytes as read.
fn held(world: &World, owner: &str, unid: Unid) -> (Stored, Bytes) {
    let read: Result<_, MailError> = world.store.read(|snapshot| {
        let held = find(snapshot, owner, unid)?.expect("it is there");
        let bytes = bytes(snapshot, owner, &held)?;
        // Any bytes give something to show.
        message_json(
            owner,
            (&held, &keywords(snapshot, owner, unid)?),
            &bytes,
            true,
        );
        Ok((held, bytes))
    });
    read.unwrap()
}

fn inbox(world: &World, owner: &str) -> Unid {
    let unids = world.unids(owner, Folder::Inbox);
    assert_eq!(unids.len(), 1, "{owner}");
    unids[0]
}

/// All operations of an owner on a message, one after the other; its bytes stay.
fn handle(world: &mut World, owner: &str, unid: Unid, expected: &[u8]) {
    let marking = Marking {
        read: Some(true),
        flagged: Some(true),
        keywords: Some(vec!["work".to_owned()]),
        ..Marking::default()
    };
    for step in 0..4 {
        let changed = world.change(owner, |context| match step {
            0 => mark_as(context, &[unid], &marking),
            1 => move_to(context, &[unid], Folder::Archive),
            2 => add_and_remove(context, Folder::Inbox, &[unid], &[]),
            _ => delete(context, &[unid], false),
        });
        changed.unwrap();
        let (held, bytes) = held(world, owner, unid);
        assert!(bytes == expected, "{owner}, step {step}");
        assert_eq!(held.entry.size, expected.len() as u64);
        assert!(held.entry.read && held.entry.marks.flagged);
        world.check();
    }
}

/// All keys in a partition but counters and change-log entries.
fn left(world: &World, partition: &str) -> Vec<String> {
    let mut keys = Vec::new();
    let look = |snapshot: &dyn Snapshot| {
        snapshot.browse(partition, b"", None, usize::MAX, &mut |key, _| {
            let is_kept = |prefix: &[u8]| key.starts_with(prefix);
            if ![&b"m/c/"[..], b"m/h", b"m/l/"].into_iter().any(is_kept) {
                keys.push(String::from_utf8_lossy(key).into_owned());
            }
            std::ops::ControlFlow::Continue(())
        })
    };
    world.store.read(look).unwrap();
    keys
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// From a remote server: to one or several, shared or not; removed with the last holder.
    #[test]
    fn what_comes_in_goes_out_byte_for_byte(message in message(), to in people()) {
        let mut world = World::new();
        world.change("", |context| receive(context, &to, TRACE, &message)).unwrap();
        let expected = [TRACE.as_bytes(), &message].concat();
        for owner in &to {
            let unid = inbox(&world, owner);
            prop_assert!(held(&world, owner, unid).1 == expected);
            handle(&mut world, owner, unid, &expected);
        }
        for owner in &to {
            world.change(owner, |context| empty(context, Folder::Trash)).unwrap();
            world.check();
            prop_assert_eq!(left(&world, owner), Vec::<String>::new());
        }
        prop_assert_eq!(left(&world, "$mail"), Vec::<String>::new());
    }

    /// From a local user, stored as a draft before, with a copy of its own; and imported.
    #[test]
    fn what_is_written_and_brought_goes_out_byte_for_byte(message in message(), to in people()) {
        let mut world = World::new();
        let message = Bytes::from(message);
        let owner = USERS[0];
        let draft = world.change(owner, |context| drafts::save(context, &message)).unwrap().unwrap();
        prop_assert!(held(&world, owner, draft).1 == message);
        let parcel = RoutedMessage { message: message.clone(), to: to.clone() };
        let sent = world.change(owner, |context| send(context, &parcel)).unwrap().unwrap();
        prop_assert!(held(&world, owner, sent).1 == message);
        for user in &to {
            prop_assert!(held(&world, user, inbox(&world, user)).1 == message);
        }
        let words = ["$Junk".to_owned(), "work".to_owned()];
        let bring = |world: &mut World| {
            let mut is_new = false;
            let made = world.change(owner, |context| {
                let marks = (true, Marks::default(), &words[..]);
                let (decision, new) = import_once(context, Folder::Archive, (&message, 7, 0), marks)?;
                is_new = new;
                Ok(decision)
            });
            (made.unwrap().unwrap(), is_new)
        };
        let (brought, is_new) = bring(&mut world);
        prop_assert!(is_new && held(&world, owner, brought).1 == message);
        prop_assert_eq!(bring(&mut world), (brought, false));
        let read = |snapshot: &dyn Snapshot| keywords(snapshot, owner, brought);
        prop_assert_eq!(&world.store.read(read).unwrap(), &words);
        world.check();
        world.change(owner, |context| delete(context, &[brought], true)).unwrap();
        prop_assert!(world.store.read(read).unwrap().is_empty());
        world.check();
    }
}

/// The batch that sends a reply flags the original. This doesn't restore the draft that is sent,
/// and a missing original doesn't prevent sending.
#[test]
fn what_is_answered_is_marked_with_the_answer() {
    let mut world = World::new();
    let owner = USERS[0];
    let to = BTreeSet::from([owner.to_owned()]);
    let message = b"Subject: question\r\n\r\n";
    world
        .change("", |context| receive(context, &to, "", message))
        .unwrap();
    let question = inbox(&world, owner);
    let text = Bytes::from_static(b"Subject: answer\r\n\r\n");
    let draft = world.change(owner, |context| drafts::save(context, &text));
    let draft = draft.unwrap().unwrap();
    let to = BTreeSet::from([USERS[1].to_owned()]);
    let parcel = RoutedMessage { message: text, to };
    let marking = Marking {
        answered: Some(true),
        ..Marking::default()
    };
    let answer = |world: &mut World, draft: Option<Unid>, answered| {
        let sent = world.change(owner, |context| {
            let sent = match draft {
                Some(draft) => drafts::send(context, (draft, None), &parcel)?,
                None => send(context, &parcel)?,
            };
            and_mark(context, sent, (answered, &marking))
        });
        sent.unwrap();
        world.check();
    };
    answer(&mut world, Some(draft), draft);
    assert_eq!(world.unids(owner, Folder::Drafts), []);
    assert!(!held(&world, owner, question).0.entry.marks.answered);
    answer(&mut world, None, question);
    assert!(held(&world, owner, question).0.entry.marks.answered);
    answer(&mut world, None, Unid::new(1, 1));
    assert_eq!(world.unids(owner, Folder::Sent).len(), 3);
}

/// A draft's flags belong to its owner, and survive a new text.
#[test]
fn a_draft_that_is_rewritten_keeps_its_marks_and_keywords() {
    let mut world = World::new();
    let owner = USERS[0];
    let text = Bytes::from_static(b"Subject: draft\r\n\r\n");
    let draft = world.change(owner, |context| drafts::save(context, &text));
    let draft = draft.unwrap().unwrap();
    let words = vec!["work".to_owned()];
    let marking = Marking {
        answered: Some(true),
        flagged: Some(true),
        keywords: Some(words.clone()),
        ..Marking::default()
    };
    let marked = world.change(owner, |context| mark_as(context, &[draft], &marking));
    marked.unwrap();
    let before = held(&world, owner, draft).0.entry;
    let text = Bytes::from_static(b"Subject: another draft\r\n\r\n");
    let again = world.change(owner, |context| {
        drafts::rewrite(context, (draft, None), &text)
    });
    assert_eq!(again.unwrap(), Some(draft));
    let (after, bytes) = held(&world, owner, draft);
    assert_eq!(bytes, text);
    assert_eq!(after.entry.summary.subject, "another draft");
    assert!(before.marks.flagged && before.marks.answered);
    assert_eq!((after.entry.marks, after.entry.read), (before.marks, true));
    let read = |snapshot: &dyn Snapshot| keywords(snapshot, owner, draft);
    assert_eq!(world.store.read(read).unwrap(), words);
    world.check();
}

/// Two windows with the same draft: the older one neither sends its text nor overwrites the newer text.
#[test]
fn a_draft_that_was_changed_elsewhere_is_not_overwritten() {
    let mut world = World::new();
    let owner = USERS[0];
    let text = Bytes::from_static(b"To: u1\r\nSubject: draft\r\n\r\n");
    let draft = world.change(owner, |context| drafts::save(context, &text));
    let draft = draft.unwrap().unwrap();
    let seen = Some(held(&world, owner, draft).0.revision);
    let newer = Bytes::from_static(b"To: u1\r\nSubject: newer\r\n\r\n");
    let rewrite = |world: &mut World, text: &Bytes| {
        world.change(owner, |context| {
            drafts::rewrite(context, (draft, seen), text)
        })
    };
    rewrite(&mut world, &newer).unwrap();
    let refused = rewrite(&mut world, &text).unwrap_err();
    assert!(is_conflict(&refused), "{refused:?}");
    let parcel = RoutedMessage {
        message: text.clone(),
        to: [USERS[1].to_owned()].into(),
    };
    let sent = world.change(owner, |context| {
        drafts::send(context, (draft, seen), &parcel)
    });
    let refused = sent.unwrap_err();
    assert!(is_conflict(&refused), "{refused:?}");
    let (now, bytes) = held(&world, owner, draft);
    assert_eq!(bytes, newer);
    let sent = world.change(owner, |context| {
        drafts::send(context, (draft, Some(now.revision)), &parcel)
    });
    assert!(sent.is_ok());
    world.check();
}

fn is_conflict(error: &MailError) -> bool {
    matches!(
        error,
        MailError::Refused {
            reason: Reason::Conflict,
            ..
        }
    )
}

/// A message that disappears between lookup and read was removed: the store is not damaged.
#[test]
fn a_message_that_is_removed_while_it_is_read_is_not_found() {
    let mut world = World::new();
    let owner = USERS[0];
    let text = Bytes::from_static(b"Subject: draft\r\n\r\n");
    let draft = world.change(owner, |context| drafts::save(context, &text));
    let draft = draft.unwrap().unwrap();
    let (found, _) = held(&world, owner, draft);
    let parcel = RoutedMessage {
        message: text,
        to: [USERS[1].to_owned()].into(),
    };
    let sent = world.change(owner, |context| {
        drafts::send(context, (draft, None), &parcel)
    });
    sent.unwrap();
    let read = world
        .store
        .read(|snapshot| groupware_mail::bytes(snapshot, owner, &found));
    let refused = read.unwrap_err();
    let is_missing = matches!(
        refused,
        MailError::Refused {
            reason: Reason::NotFound,
            ..
        }
    );
    assert!(is_missing, "{refused:?}");
}

/// Messages of other folders that arrived between those of a page are not read.
#[test]
fn keywords_are_read_of_the_messages_that_are_asked_for() {
    let mut world = World::new();
    let owner = USERS[0];
    let text = Bytes::from_static(b"Subject: draft\r\n\r\n");
    let save = |world: &mut World| {
        let draft = world.change(owner, |context| drafts::save(context, &text));
        draft.unwrap().unwrap()
    };
    let (first, bare) = (save(&mut world), save(&mut world));
    let to = BTreeSet::from([owner.to_owned()]);
    world
        .change("", |context| {
            receive(context, &to, "", b"Subject: x\r\n\r\n")
        })
        .unwrap();
    let (between, last) = (inbox(&world, owner), save(&mut world));
    let words = vec!["work".to_owned()];
    let marking = Marking {
        keywords: Some(words.clone()),
        ..Marking::default()
    };
    let marked = [first, between, last];
    let done = world.change(owner, |context| mark_as(context, &marked, &marking));
    done.unwrap();
    let read = |unids: &[Unid]| {
        let look = |snapshot: &dyn Snapshot| keywords_of(snapshot, owner, unids);
        world.store.read(look).unwrap()
    };
    let expected = BTreeMap::from([first, last].map(|unid| (unid, words.clone())));
    assert_eq!(read(&[last, bare, first]), expected);
    assert_eq!(read(&[]), BTreeMap::new());
}

/// Returns the defects that a check finds in a world with a shared message and one with a body of
/// its own, after a batch that no part of the program would write.
fn damaged(damage: impl FnOnce(&mut Batch, &Stored)) -> Vec<String> {
    let mut world = World::new();
    let to: BTreeSet<String> = USERS.map(str::to_owned).into();
    let large = vec![b'x'; limits::SHARED_BYTES];
    world
        .change("", |context| receive(context, &to, "", &large))
        .unwrap();
    let shared = held(&world, USERS[0], inbox(&world, USERS[0])).0;
    let draft = Bytes::from_static(b"Subject: draft\r\n\r\n");
    world
        .change(USERS[0], |context| drafts::save(context, &draft))
        .unwrap();
    let mut batch = Batch::new();
    damage(&mut batch, &shared);
    world.store.commit_blocking(batch).unwrap();
    world.store.read(found_wrong).unwrap()
}

#[test]
fn what_is_damaged_is_found() {
    let owner = USERS[0];
    let check = |expected: &[&str], damage: &dyn Fn(&mut Batch, &Stored)| {
        let wrong = damaged(damage);
        let begins = wrong
            .iter()
            .zip(expected)
            .all(|(found, words)| found.contains(words));
        assert!(
            wrong.len() == expected.len() && begins,
            "{expected:?}: {wrong:#?}"
        );
    };
    let body = |held: &Stored| held.entry.shared.expect("it is shared");
    check(&[], &|_, _| {});
    check(&["has lost its bytes"], &|batch, _| {
        batch.delete_range(owner, "m/b/", "m/b0");
    });
    check(
        &["has lost its bytes", "belong to no message"],
        &|batch, _| {
            batch.delete_range(owner, "m/b/", "m/b0");
            batch.put(owner, format!("m/b/{}", Unid::new(1, 1)), "x");
        },
    );
    check(
        &["counts 0 messages, 0 unread, with 0 bytes, and has 1, 1, with 65536"],
        &|batch, _| {
            batch.delete(owner, "m/c/inbox");
        },
    );
    check(&["has the UID 1, and inbox is at 0"], &|batch, _| {
        batch.add(owner, "m/c/inbox", [0, 0, 0, -1]);
    });
    check(&["and the last is", "and the last is"], &|batch, _| {
        batch.add(owner, "m/h", [-2]);
    });
    check(&["which another has in drafts"], &|batch, held| {
        let entry = br#"{"uid":1,"modseq":1,"subject":"","date":"","from":{}}"#;
        let twin = Unid::new(1, 1);
        let fixed = [&[1, 0][..], &[0; 32]].concat();
        assert!(held.entry.numbers.is_some());
        batch
            .put(
                owner,
                format!("m/i/drafts/{twin}"),
                [&fixed[..], entry].concat(),
            )
            .put(owner, format!("m/b/{twin}"), "")
            .add(owner, "m/c/drafts", [1, 1, 0]);
    });
    check(
        &["has no mark", "has no mark", "has no mark"],
        &|batch, _| {
            USERS.iter().for_each(|user| {
                batch.delete_range(*user, "m/s/", "m/s0");
            });
        },
    );
    check(&["is gone, and 3 messages hold it"], &|batch, held| {
        batch.delete("$mail", format!("b/{}", body(held)));
    });
    check(&["has 1 bytes in place of 65536"], &|batch, held| {
        batch.put("$mail", format!("b/{}", body(held)), "x");
    });
    check(
        &["held by 3 messages, and 2 are counted"],
        &|batch, held| {
            batch.add("$mail", format!("h/{}", body(held)), [-1]);
        },
    );
    check(&["is no message's"], &|batch, _| {
        batch.put(owner, "m/i/inbox/x", "");
    });
}
