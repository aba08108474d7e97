//! Numbers for messages without any: messages from before numbers existed, and messages of a
//! version that assigns none.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use groupware_mail::numbering::{Unnumbered, number, settle, unnumbered};
use groupware_mail::{
    Folder, MailError, Marking, Reason, RoutedMessage, State, changes_since, folders, mark,
    mark_as, move_to, send,
};
use groupware_store::{Batch, Snapshot, Store, StoreError};

use crate::support::{USERS, World, found_wrong};

const OWNER: &str = USERS[0];

/// An account with messages in several folders.
fn world() -> World {
    let mut world = World::new();
    let parcel = RoutedMessage {
        message: "Subject: Plan\r\n\r\ntext\r\n".into(),
        to: BTreeSet::from([OWNER.to_owned()]),
    };
    for _ in 0..5 {
        world
            .change(OWNER, |context| send(context, &parcel))
            .unwrap();
    }
    let made = world.change(OWNER, |context| folders::create(context, "Own"));
    let own = Folder::Own(made.unwrap().unwrap());
    let inbox = world.unids(OWNER, Folder::Inbox);
    let moved = world.change(OWNER, |context| move_to(context, &inbox[..2], own));
    moved.unwrap();
    world
}

/// A stored entry as written by a version without numbers.
fn without_numbers(value: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(value);
    let begin = text.find(r#""uid":"#).expect("it has a UID");
    let end = text.find(r#""subject""#).expect("it has a subject");
    // The prefix keeps its length: bytes that are no text are replaced.
    let begin = value.len() - (text.len() - begin);
    let end = value.len() - (text.len() - end);
    [&value[..begin], &value[end..]].concat()
}

/// Removes all that versions without numbers don't write.
fn as_before(store: &Store) {
    let mut batch = Batch::new();
    let read: Result<(), StoreError> = store.read(|snapshot| {
        snapshot.scan(OWNER, b"m/", None, usize::MAX, &mut |key, record| {
            if key.starts_with(b"m/i/") {
                batch.put(OWNER, key, without_numbers(&record.value));
            } else if key.starts_with(b"m/c/") {
                batch.put(OWNER, key, record.value.slice(..24));
            }
            ControlFlow::Continue(())
        })
    });
    read.unwrap();
    batch
        .delete(OWNER, "m/h")
        .delete_range(OWNER, "m/l/", "m/l0");
    store.commit_blocking(batch).unwrap();
}

fn all_unnumbered(world: &World) -> Vec<Unnumbered> {
    let of = |thorough| {
        let found = world
            .store
            .read(|snapshot| unnumbered(snapshot, OWNER, thorough));
        found.unwrap()
    };
    let (told, all) = (of(false), of(true));
    assert!(told.iter().all(|one| all.contains(one)), "{told:?}");
    all
}

fn commit(world: &World, decide: impl FnOnce(&dyn Snapshot) -> Result<Batch, MailError>) {
    let batch = world.store.read(decide).unwrap();
    if !batch.is_empty() {
        world.store.commit_blocking(batch).unwrap();
    }
}

/// Assigns numbers to all messages without any.
fn number_all(world: &World) {
    for Unnumbered { folder, messages } in all_unnumbered(world) {
        for some in messages.chunks(2) {
            commit(world, |snapshot| {
                number(snapshot, (OWNER, folder), some, 1_767_225_700_000_000)
            });
        }
        commit(world, |snapshot| settle(snapshot, OWNER, folder));
    }
}

fn state(world: &World, folder: Folder) -> State {
    let state = world
        .store
        .read(|snapshot| State::of(snapshot, OWNER, folder));
    state.unwrap()
}

fn check(world: &World) {
    world.check();
    assert_eq!(all_unnumbered(world), []);
    assert_eq!(world.store.read(found_wrong).unwrap(), Vec::<String>::new());
}

#[test]
fn what_is_older_than_numbers_gets_some_from_the_oldest_on() {
    let mut world = world();
    check(&world);
    as_before(&world.store);
    world.check();
    let before = state(&world, Folder::Inbox);
    assert_eq!((before.modseq, before.uid_next), (0, 1));
    let folders = all_unnumbered(&world);
    let kinds: Vec<bool> = folders
        .iter()
        .map(|it| matches!(it.folder, Folder::Own(_)))
        .collect();
    assert_eq!(kinds, [true, false, false], "own, inbox, sent");
    // New and changed messages have numbers.
    let inbox = world.unids(OWNER, Folder::Inbox);
    let marking = Marking {
        flagged: Some(true),
        ..Marking::default()
    };
    let marked = world.change(OWNER, |context| mark_as(context, &inbox[1..2], &marking));
    marked.unwrap();
    let (known, then) = (state(&world, Folder::Inbox), world.messages(OWNER));
    number_all(&world);
    check(&world);
    let uids = |world: &World| -> Vec<u64> {
        let listed = world.messages(OWNER).remove(&Folder::Inbox).unwrap();
        let uid = |entry: &groupware_mail::Entry| entry.numbers.unwrap().uid;
        listed.iter().map(|listed| uid(&listed.entry)).collect()
    };
    assert_eq!(uids(&world), [3, 1, 2]);
    // Clients that know them without numbers receive the numbers.
    let since = world
        .store
        .read(|snapshot| changes_since(snapshot, OWNER, Folder::Inbox, known.modseq))
        .unwrap();
    assert!(since.vanished.is_empty());
    assert_eq!(since.messages.len(), then[&Folder::Inbox].len() - 1);
    // A second run changes nothing.
    number_all(&world);
    assert_eq!(state(&world, Folder::Inbox), since.state);
}

/// During the read of all messages, others arrive and change; and two servers start at the same time.
#[test]
fn who_delivers_meanwhile_is_not_in_the_way() {
    let mut world = world();
    let inbox = world.unids(OWNER, Folder::Inbox);
    let before = state(&world, Folder::Inbox);
    let mut batch = Batch::new();
    batch.add(OWNER, "m/c/inbox", [0, 0, 0, 0, 2]);
    world.store.commit_blocking(batch).unwrap();
    for (round, expected) in [(0, 1), (1, 0)] {
        let decide = |snapshot: &dyn Snapshot| settle(snapshot, OWNER, Folder::Inbox);
        let [first, second] = [(); 2].map(|()| world.store.read(decide).unwrap());
        let marked = world.change(OWNER, |context| mark(context, &inbox[..1], round == 0));
        marked.unwrap();
        let moved = world.change(OWNER, |context| {
            move_to(context, &inbox[1..2], Folder::BUILT_IN[3 + round])
        });
        moved.unwrap();
        let settled = [first, second]
            .into_iter()
            .filter(|batch| !batch.is_empty());
        let settled: Vec<bool> = settled
            .map(|batch| world.store.commit_blocking(batch).is_ok())
            .collect();
        assert_eq!(settled.iter().filter(|is_done| **is_done).count(), expected);
        assert_eq!(settled.len(), 2 * expected);
        check(&world);
    }
    let known = world
        .store
        .read(|snapshot| changes_since(snapshot, OWNER, Folder::Inbox, before.modseq));
    assert!(known.is_err(), "{known:?}");
}

/// A version without numbers flags one message: the count of numbered messages stays.
#[test]
fn what_another_version_marked_is_found_where_all_are_looked_at() {
    let world = world();
    let marked = world.unids(OWNER, Folder::Inbox)[0];
    let before = state(&world, Folder::Inbox);
    let key = format!("m/i/inbox/{marked}").into_bytes();
    let mut batch = Batch::new();
    let read: Result<(), StoreError> = world.store.read(|snapshot| {
        let entry = snapshot.get(OWNER, &key)?.unwrap();
        batch.put(OWNER, key.clone(), without_numbers(&entry.value));
        Ok(())
    });
    read.unwrap();
    world.store.commit_blocking(batch).unwrap();
    let found = all_unnumbered(&world);
    let expected = Unnumbered {
        folder: Folder::Inbox,
        messages: vec![marked],
    };
    assert_eq!(found, [expected]);
    number_all(&world);
    check(&world);
    let known = world
        .store
        .read(|snapshot| changes_since(snapshot, OWNER, Folder::Inbox, before.modseq));
    assert_eq!(
        known.map_err(|error| error.reason()),
        Err(Some(Reason::Gone))
    );
}

/// A version without numbers flags one message and removes another.
#[test]
fn who_knew_a_folder_that_another_version_changed_begins_anew() {
    let world = world();
    let inbox = world.unids(OWNER, Folder::Inbox);
    let before = state(&world, Folder::Inbox);
    let entry = |unid| format!("m/i/inbox/{unid}").into_bytes();
    let mut batch = Batch::new();
    let read: Result<(), StoreError> = world.store.read(|snapshot| {
        let marked = snapshot.get(OWNER, &entry(inbox[0]))?.unwrap();
        batch.put(OWNER, entry(inbox[0]), without_numbers(&marked.value));
        Ok(())
    });
    read.unwrap();
    let size = world.messages(OWNER)[&Folder::Inbox][1].entry.size;
    let size = i64::try_from(size).unwrap();
    batch
        .delete(OWNER, entry(inbox[1]))
        .delete(OWNER, format!("m/b/{}", inbox[1]).into_bytes())
        .add(OWNER, "m/c/inbox", [-1, -1, -size]);
    world.store.commit_blocking(batch).unwrap();
    number_all(&world);
    check(&world);
    let since = |modseq| {
        let known = world
            .store
            .read(|snapshot| changes_since(snapshot, OWNER, Folder::Inbox, modseq));
        known.map_err(|error| error.reason())
    };
    assert_eq!(since(before.modseq), Err(Some(Reason::Gone)));
    let now = state(&world, Folder::Inbox);
    assert!(now.uid_next > before.uid_next && now.uid_validity == before.uid_validity);
    assert!(since(now.modseq).unwrap().messages.is_empty());
}

/// Otherwise clients would show the messages of the earlier folder: its UIDs start at 1 again.
#[test]
fn a_folder_that_is_made_again_within_a_second_has_another_uid_validity() {
    let mut world = world();
    let mut known = Vec::new();
    for _ in 0..5 {
        let made = world.change(OWNER, |context| folders::create(context, "again"));
        let unid = made.unwrap().unwrap();
        let state = world
            .store
            .read(|snapshot| State::of(snapshot, OWNER, Folder::Own(unid)));
        known.push(state.unwrap().uid_validity.unwrap());
        world.now_us -= 1_000_000;
        let gone = world.change(OWNER, |context| folders::delete(context, unid));
        gone.unwrap();
        world.now_us -= 1_000_000;
    }
    assert!(known.is_sorted_by(|one, next| one < next), "{known:?}");
}
