//! Content is read back unchanged; errors name their cause; an unreachable store differs from a rejection.

use std::time::Duration;

use groupware_content::{ContentError, ContentHash, Objects, Placed};
use groupware_objects::{Address, Credentials, ObjectStorage, OpenError};
use plimsoll_tests::objects::{KEY_ID, MAKES, ObjectServer};
use plimsoll_tests::relay::{Direction, Relay, Way};
use plimsoll_tests::tmpfs::Tmpfs;
use plimsoll_tests::wait_until;

use crate::support::{bits, change, content, file, keep, memory, open, put, read};

/// The empty content, one byte, exactly one part, two parts, and three parts.
const LENGTHS: [usize; 5] = [0, 1, 8 << 20, (8 << 20) + 1, 20 << 20];
const LIMIT: Duration = Duration::from_secs(120);

#[test]
fn content_comes_back_from_each_make() {
    let mut tried = 0;
    for server in MAKES.into_iter().filter_map(ObjectServer::of) {
        tried += 1;
        let store = memory();
        let shelf = open(&server, server.address(), &store).unwrap();
        for (seed, bytes) in (0..).zip(LENGTHS) {
            let content = content(seed, bytes);
            let (hash, placed) = put(&shelf, &content).unwrap();
            // No record refers to it yet.
            assert!(shelf.read(hash, (0, 0)).unwrap().is_none());
            keep(&store, hash, bytes, placed).unwrap();
            assert!(read(&shelf, hash, 0, bytes) == content, "{bytes}");
            let part = bytes / 3..bytes - bytes / 4;
            let found = read(&shelf, hash, part.start as u64, part.len());
            assert!(found == content[part], "a part of {bytes}");
            // Equal content is put once.
            let before = server.kept_bytes();
            assert_eq!(put(&shelf, &content).unwrap(), (hash, Placed::Known));
            assert_eq!(server.kept_bytes(), before);
            keep(&store, hash, bytes, Placed::Known).unwrap();
        }
        assert!(shelf.is_there() && !shelf.stats().is_away);
    }
    if tried == 0 {
        // This case reports it.
        assert!(ObjectServer::start().is_none());
    }
}

#[test]
fn of_two_who_put_the_same_both_are_right() {
    let Some(server) = ObjectServer::start() else {
        return;
    };
    let store = memory();
    let [one, other] = [(), ()].map(|()| open(&server, server.address(), &store).unwrap());
    let content = content(7, 1000);
    let (hash, first) = put(&one, &content).unwrap();
    let (_, second) = put(&other, &content).unwrap();
    assert!(first != second && first != Placed::Known && second != Placed::Known);
    // Both decided on the same state: one has to decide again.
    let (late, batch) = (
        change(&store, hash, 1000, second),
        change(&store, hash, 1000, first),
    );
    store.commit_blocking(batch).unwrap();
    assert!(store.commit_blocking(late).is_err());
    keep(&store, hash, 1000, second).unwrap();
    assert!(read(&one, hash, 0, 1000) == content);
}

#[test]
fn a_place_is_of_one_store_and_is_not_forgotten() {
    let Some(server) = ObjectServer::start() else {
        return;
    };
    let (store, other) = (memory(), memory());
    for _ in 0..2 {
        open(&server, server.address(), &store).unwrap();
    }
    let refused = open(&server, server.address(), &other).unwrap_err();
    assert!(matches!(refused, OpenError::Others { .. }), "{refused}");
    assert!(refused.is_configuration());
    let elsewhere = server.url(server.address(), "elsewhere");
    let at = |address: &str, secret: &str| {
        let address = Address::parse(address).unwrap();
        let credentials = Credentials::new(KEY_ID, secret, None);
        ObjectStorage::open(&store, (&address, &credentials), bits).unwrap_err()
    };
    let secret = plimsoll_tests::objects::SECRET;
    let empty = at(&elsewhere, secret);
    assert!(matches!(empty, OpenError::Nothing { .. }), "{empty}");
    let wrong = at(&server.url(server.address(), "a/b"), "wrong-secret");
    assert!(wrong.is_configuration(), "{wrong:?}");
    let words = format!("{wrong}: {:?}", std::error::Error::source(&wrong));
    assert!(!words.contains("wrong-secret"), "{words}");
    let nobody = plimsoll_tests::server::free_address();
    let away = at(&server.url(nobody, "a/b"), secret);
    assert!(!away.is_configuration(), "{away:?}");
}

/// The object exists, but the response was lost.
#[test]
fn an_answer_that_is_lost_loses_nothing() {
    let Some(server) = ObjectServer::start() else {
        return;
    };
    let relay = Relay::start(server.address()).unwrap();
    let store = memory();
    let shelf = open(&server, relay.address(), &store).unwrap();
    for (seed, bytes) in [(1, 100), (2, 9 << 20)] {
        let content = content(seed, bytes);
        let before = server.kept_bytes();
        relay.set(Direction::Back, Way::Stalled);
        let done = std::thread::scope(|scope| {
            let putting = scope.spawn(|| put(&shelf, &content));
            // The first request gets its response. Then all of the object is sent, and the response is lost.
            if bytes > 1 << 20 {
                relay.set(Direction::Back, Way::Open);
            }
            wait_until(LIMIT, "bytes to come", || {
                server.kept_bytes() > before || putting.is_finished()
            });
            relay.cut();
            relay.heal();
            putting.join().unwrap()
        });
        let (hash, placed) = done.unwrap();
        keep(&store, hash, bytes, placed).unwrap();
        assert!(read(&shelf, hash, 0, bytes) == content, "{bytes}");
    }
}

#[test]
fn a_store_that_is_away_is_told_so_and_comes_back() {
    let Some(server) = ObjectServer::start() else {
        return;
    };
    let store = memory();
    let shelf = open(&server, server.address(), &store).unwrap();
    let content = content(3, 3 << 20);
    let (hash, placed) = put(&shelf, &content).unwrap();
    keep(&store, hash, content.len(), placed).unwrap();
    let reading = shelf
        .read(hash, (0, content.len() as u64))
        .unwrap()
        .unwrap();
    let mut begin = [0; 1000];
    reading.read_exact_at(&mut begin, 0).unwrap();
    server.kill();
    let away = put(&shelf, b"other").unwrap_err();
    assert!(matches!(away, ContentError::Away(_)), "{away}");
    let away = shelf.read(hash, (0, 1)).unwrap_err();
    assert!(matches!(away, ContentError::Away(_)), "{away}");
    assert!(shelf.stats().is_away);
    server.restart();
    wait_until(LIMIT, "the store to be back", || shelf.is_there());
    // A reader continues where it stopped.
    let mut rest = vec![0; content.len() - begin.len()];
    wait_until(LIMIT, "the rest", || {
        reading.read_exact_at(&mut rest, begin.len() as u64).is_ok()
    });
    assert!([&begin[..], &rest].concat() == content);
    put(&shelf, b"other").unwrap();
}

#[test]
fn what_there_is_no_room_for_is_refused_as_such() {
    let Some(disk) = Tmpfs::mount("24m") else {
        println!("SKIPPED: nothing can be mounted here");
        return;
    };
    let Some(server) = ObjectServer::start_on(&disk.path().join("objects")) else {
        return;
    };
    let store = memory();
    let Ok(shelf) = open(&server, server.address(), &store) else {
        println!("SKIPPED: this object store can't be on a tmpfs");
        return;
    };
    let small = content(1, 1000);
    let (hash, placed) = put(&shelf, &small).unwrap();
    keep(&store, hash, small.len(), placed).unwrap();
    let refused = put(&shelf, &content(2, 30 << 20)).unwrap_err();
    assert!(
        matches!(refused, ContentError::Full | ContentError::Away(_)),
        "{refused:?}"
    );
    wait_until(LIMIT, "the store to be asked again", || shelf.is_there());
    assert!(read(&shelf, hash, 0, small.len()) == small);
}

#[test]
fn an_object_that_is_gone_is_missing() {
    let Some(server) = ObjectServer::start() else {
        return;
    };
    let store = memory();
    let shelf = open(&server, server.address(), &store).unwrap();
    let content = content(5, 5000);
    let (hash, placed) = put(&shelf, &content).unwrap();
    keep(&store, hash, content.len(), placed).unwrap();
    let Placed::New(id) = placed else {
        panic!("{placed:?}")
    };
    assert_eq!(shelf.list(hash.as_bytes()[0]).unwrap(), [(hash, id)]);
    for _ in 0..2 {
        shelf.remove(hash, id, None).unwrap();
    }
    assert_eq!(shelf.list(hash.as_bytes()[0]).unwrap(), []);
    let missing = shelf.read(hash, (0, 5000)).unwrap_err();
    assert!(matches!(missing, ContentError::Missing { .. }), "{missing}");
    // Another put stores it again.
    let (_, placed) = put(&shelf, &content).unwrap();
    keep(&store, hash, content.len(), placed).unwrap();
    assert!(read(&shelf, hash, 0, 5000) == content);
    // No object has this content.
    let none = ContentHash::of(b"none");
    assert!(shelf.read(none, (0, 1)).unwrap().is_none());
    // A file that ends too early is an error and creates no object.
    let cut = shelf.put(none, &file(b"no"), 4);
    assert!(matches!(cut, Err(ContentError::Io { .. })), "{cut:?}");
}
