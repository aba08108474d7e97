//! Restored data never assign a number again that a client may know.

use std::sync::Arc;

use groupware_mail::{
    Folder, Marking, Reason, RoutedMessage, State, changes_since, mark_as, restored, send,
};
use groupware_store::{Batch, CommitError, Store, StoreError, StoreOptions, counters, transfer};

use crate::support::{USERS, World};

const OWNER: &str = USERS[0];
const HEAD: &[u8] = b"m/h";
/// A minute after the start of the world.
const NOW_S: i64 = 1_767_225_660;

/// Updates all accounts.
fn go_through(store: &Store, mailboxes: &[Arc<str>], now_s: i64) {
    while go_on(store, mailboxes, now_s) {}
}

/// Commits the next slice; returns whether there may be more.
fn go_on(store: &Store, mailboxes: &[Arc<str>], now_s: i64) -> bool {
    let next = store.read(|snapshot| restored::next_slice(snapshot, mailboxes, now_s));
    let Some(batch) = next.unwrap() else {
        return false;
    };
    match store.commit_blocking(batch) {
        Ok(_) | Err(CommitError::Conflict { .. }) => true,
        Err(error) => panic!("{error}"),
    }
}

fn is_noted(store: &Store) -> bool {
    store.read(restored::is_noted).unwrap()
}

fn state(world: &World) -> State {
    let state =
        |snapshot: &dyn groupware_store::Snapshot| State::of(snapshot, OWNER, Folder::Inbox);
    world.store.read(state).unwrap()
}

fn deliver(world: &mut World) {
    let parcel = RoutedMessage {
        message: "Subject: Plan\r\n\r\ntext\r\n".into(),
        to: [OWNER.to_owned()].into(),
    };
    let sent = world.change(USERS[1], |context| send(context, &parcel));
    sent.unwrap();
}

fn mark_first(world: &mut World) {
    let first = world.unids(OWNER, Folder::Inbox)[0];
    let read = world.messages(OWNER)[&Folder::Inbox][0].entry.read;
    let marking = Marking {
        read: Some(!read),
        ..Marking::default()
    };
    let marked = world.change(OWNER, |context| mark_as(context, &[first], &marking));
    marked.unwrap();
}

#[test]
fn who_has_seen_what_is_lost_begins_anew() {
    let mut world = World::new();
    deliver(&mut world);
    deliver(&mut world);
    let copied = state(&world);
    let copy = Store::memory(StoreOptions::default()).unwrap();
    transfer(&world.store, &copy, restored::note(), &mut |_| {}).unwrap();
    assert!(is_noted(&copy) && !is_noted(&world.store));
    deliver(&mut world);
    mark_first(&mut world);
    let lost = state(&world);
    world.store = copy;
    let mailboxes: Vec<Arc<str>> = USERS.iter().map(|user| (*user).into()).collect();
    go_through(&world.store, &mailboxes, NOW_S);
    assert!(!is_noted(&world.store));
    world.check();
    let now = state(&world);
    assert!(now.modseq > lost.modseq && now.uid_validity > lost.uid_validity);
    assert_eq!(now.uid_next, copied.uid_next);
    deliver(&mut world);
    mark_first(&mut world);
    let since = |modseq| {
        let read = |snapshot: &dyn groupware_store::Snapshot| {
            changes_since(snapshot, OWNER, Folder::Inbox, modseq)
        };
        world.store.read(read)
    };
    for seen in copied.modseq - 1..=lost.modseq {
        let refused = since(seen).map_err(|error| error.reason());
        assert_eq!(refused, Err(Some(Reason::Gone)), "{seen}");
    }
    let changed = since(now.modseq).unwrap();
    assert_eq!((changed.messages.len(), changed.state), (1, state(&world)));
    // A second run changes nothing.
    go_through(&world.store, &mailboxes, NOW_S + 1);
    assert_eq!(state(&world), changed.state);
    world.check();
}

/// More accounts than fit into a slice, whose clock was wrong: each update raises their numbers.
fn many() -> (Store, Vec<Arc<str>>) {
    let store = Store::memory(StoreOptions::default()).unwrap();
    let mut batch = restored::note();
    let mailboxes: Vec<Arc<str>> = (0..1234)
        .map(|number| format!("{number:04}").into())
        .collect();
    for mailbox in &mailboxes[1..] {
        batch.add(Arc::clone(mailbox), HEAD, [NOW_S << 20, NOW_S]);
    }
    store.commit_blocking(batch).unwrap();
    (store, mailboxes)
}

/// Each was updated once, and one without numbers still has none.
fn check_once(store: &Store, mailboxes: &[Arc<str>]) {
    assert!(!is_noted(store));
    let head = |mailbox: &str| {
        let record = store.read(|snapshot| snapshot.get(mailbox, HEAD));
        let record: Option<_> = Result::<_, StoreError>::unwrap(record);
        record.map(|record| counters(&record.value).collect::<Vec<i64>>())
    };
    assert_eq!(head(&mailboxes[0]), None);
    for mailbox in &mailboxes[1..] {
        let raised = vec![(NOW_S << 20) + (1 << 20), NOW_S + 1];
        assert_eq!(head(mailbox), Some(raised), "{mailbox}");
    }
}

#[test]
fn who_is_killed_is_gone_on_for() {
    let (store, mailboxes) = many();
    let mut slices = 0;
    while is_noted(&store) {
        // Each slice runs on another server, whose batch before was lost with it.
        let next = store.read(|snapshot| restored::next_slice(snapshot, &mailboxes, NOW_S));
        drop(next.unwrap().unwrap());
        assert!(go_on(&store, &mailboxes, NOW_S));
        slices += 1;
    }
    assert_eq!(slices, 3);
    check_once(&store, &mailboxes);
}

#[test]
fn several_servers_do_each_slice_once() {
    let (store, mailboxes) = many();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                go_through(&store, &mailboxes, NOW_S);
                assert!(!is_noted(&store));
            });
        }
    });
    check_once(&store, &mailboxes);
}

#[test]
fn who_decided_before_another_was_done_changes_nothing() {
    let (store, mailboxes) = many();
    let late = store.read(|snapshot| restored::next_slice(snapshot, &mailboxes, NOW_S));
    let late = late.unwrap().unwrap();
    go_through(&store, &mailboxes, NOW_S);
    let refused = store.commit_blocking(late);
    assert!(matches!(refused, Err(CommitError::Conflict { .. })));
    check_once(&store, &mailboxes);
    // With an unreadable note, all are updated.
    let mut batch = Batch::new();
    batch.put("$mail", "restored", "\u{7}0700");
    store.commit_blocking(batch).unwrap();
    let mut slices = 0;
    while go_on(&store, &mailboxes, NOW_S) {
        slices += 1;
    }
    assert_eq!((slices, is_noted(&store)), (3, false));
}
