//! Two processes over one folder, as two stores of this process: the system's locks don't distinguish them.

use groupware_content::{ContentHash, ContentStore, Pin};

fn two() -> (tempfile::TempDir, ContentStore, ContentStore) {
    let folder = tempfile::tempdir().unwrap();
    let one = ContentStore::open_shared(folder.path()).unwrap();
    let other = ContentStore::open_shared(folder.path()).unwrap();
    (folder, one, other)
}

fn put(store: &ContentStore, name: &str, content: &[u8]) -> Pin {
    let mut whole = store.create_whole(name, None).unwrap();
    whole.append(content).unwrap();
    whole.finish().unwrap()
}

/// Sweeps without any references; returns the number of removed files. `meanwhile` runs after the listing.
fn sweep(store: &ContentStore, hash: ContentHash, meanwhile: impl FnOnce()) -> u64 {
    let folder = store.sweep_folder(hash.as_bytes()[0]).unwrap().unwrap();
    meanwhile();
    folder.finish().unwrap().removed
}

/// Waits for a tick of the disk's clock, which takes some milliseconds.
fn wait_a_tick(store: &ContentStore) {
    let stamp = |name: &str| {
        drop(store.create_upload(name, 1).unwrap());
        let modified = store.upload_modified(name);
        store.remove_upload(name).unwrap();
        modified
    };
    let before = stamp("tick");
    while stamp("tick") == before {}
}

#[test]
fn what_one_has_pinned_the_other_sweeps_not() {
    let (_folder, one, other) = two();
    let pin = put(&one, "w1", b"content");
    let hash = pin.hash();
    wait_a_tick(&one);
    assert_eq!(sweep(&other, hash, || {}), 0);
    // It was pinned when the sweep began, and its record may follow the collection of references.
    assert_eq!(sweep(&other, hash, move || drop(pin)), 0);
    assert!(other.has(hash, 7));
    assert_eq!(sweep(&other, hash, || {}), 1);
    assert!(!one.has(hash, 7));
}

#[test]
fn what_one_uses_again_while_the_other_sweeps_stays() {
    let (_folder, one, other) = two();
    let hash = put(&one, "w1", b"content").hash();
    wait_a_tick(&one);
    // Equal content arrived, and its record may be committed by now.
    let removed = sweep(&other, hash, || drop(put(&one, "w2", b"content")));
    assert_eq!(removed, 0);
    assert!(one.has(hash, 7));
    // It arrives later, and stays as long as it is pinned.
    wait_a_tick(&one);
    let mut pin = None;
    assert_eq!(
        sweep(&other, hash, || pin = Some(put(&one, "w3", b"content"))),
        0
    );
    drop(pin);
    wait_a_tick(&one);
    assert_eq!(sweep(&other, hash, || {}), 1);
}

#[test]
fn one_works_on_an_upload_and_sees_that_the_other_asks() {
    let (_folder, one, other) = two();
    let claim = one.claim("u").unwrap().unwrap();
    assert!(other.claim("u").unwrap().is_none());
    assert!(other.claim("another").unwrap().is_some());
    assert!(claim.is_shared() && !claim.is_asked_for());
    let ask = other.ask_for("u").unwrap();
    assert!(claim.is_asked_for());
    drop(ask);
    assert!(!claim.is_asked_for());
    drop(claim);
    assert!(other.claim("u").unwrap().is_some());
    // A process with a folder of its own needs no locks.
    let alone = ContentStore::scratch().unwrap();
    let (first, second) = (alone.claim("u").unwrap(), alone.claim("u").unwrap());
    assert!(first.is_some_and(|claim| !claim.is_shared()) && second.is_some());
}

#[test]
fn an_upload_that_the_other_has_continued_is_read_anew() {
    let (_folder, one, other) = two();
    let mut first = one.create_upload("u", 10).unwrap();
    assert!(first.is_current());
    first.append(b"01").unwrap();
    first.settle().unwrap();
    assert!(first.is_current());
    let mut second = other.resume_upload("u", 10).unwrap();
    assert_eq!(second.offset(), 2);
    assert!(first.is_current() && second.is_current());
    second.append(b"23").unwrap();
    second.settle().unwrap();
    assert!(second.is_current() && !first.is_current());
    let mut first = one.resume_upload("u", 10).unwrap();
    assert!(first.is_current());
    first.append(b"456789").unwrap();
    first.finish().unwrap();
    assert!(!second.is_current() && first.is_current());
    drop((first, second));
    one.remove_upload("u").unwrap();
    let new = one.create_upload("u", 10).unwrap();
    let old = other.resume_upload("u", 10).unwrap();
    other.remove_upload("u").unwrap();
    drop(one.create_upload("u", 10).unwrap());
    assert!(!new.is_current() && !old.is_current());
}
