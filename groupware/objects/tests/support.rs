//! An object store with a store of records.

use std::fs::File;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use groupware_content::{ContentError, ContentHash, Objects, Placed};
use groupware_documents::refer_to;
use groupware_objects::{Address, Credentials, ObjectStorage, OpenError};
use groupware_store::{Batch, CommitError, Store, StoreOptions};
use plimsoll_tests::objects::{KEY_ID, ObjectServer, SECRET};

/// Random bits that no two puts share.
pub(crate) fn bits() -> u128 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    (u128::from(std::process::id()) << 64) | u128::from(NEXT.fetch_add(1, Relaxed))
}

pub(crate) fn memory() -> Store {
    Store::memory(StoreOptions::default()).unwrap()
}

pub(crate) fn open(
    server: &ObjectServer,
    at: SocketAddr,
    store: &Store,
) -> Result<Arc<ObjectStorage>, OpenError> {
    let address = Address::parse(&server.url(at, "a/b")).unwrap();
    let credentials = Credentials::new(KEY_ID, SECRET, None);
    ObjectStorage::open(store, (&address, &credentials), bits)
}

/// This many bytes, which depend on their offset and a seed.
pub(crate) fn content(seed: u32, bytes: usize) -> Vec<u8> {
    (0..bytes as u32)
        .map(|at| (at ^ (at >> 8) ^ seed.wrapping_mul(0x9E37_79B9)).to_le_bytes()[0])
        .collect()
}

pub(crate) fn file(content: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(content).unwrap();
    file
}

pub(crate) fn put(
    shelf: &ObjectStorage,
    content: &[u8],
) -> Result<(ContentHash, Placed), ContentError> {
    let hash = ContentHash::of(content);
    let placed = shelf.put(hash, &file(content), content.len() as u64)?;
    Ok((hash, placed))
}

/// A change that refers to content, as decided now.
pub(crate) fn change(store: &Store, hash: ContentHash, bytes: usize, placed: Placed) -> Batch {
    let mut batch = Batch::new();
    store
        .read(|snapshot| refer_to(snapshot, (hash, bytes as u64), placed, &mut batch))
        .unwrap();
    batch
}

/// Makes a record refer to content.
pub(crate) fn keep(
    store: &Store,
    hash: ContentHash,
    bytes: usize,
    placed: Placed,
) -> Result<(), CommitError> {
    let batch = change(store, hash, bytes, placed);
    store.commit_blocking(batch).map(drop)
}

/// Reads a part of content.
pub(crate) fn read(shelf: &ObjectStorage, hash: ContentHash, at: u64, bytes: usize) -> Vec<u8> {
    let reading = shelf.read(hash, (at, bytes as u64)).unwrap().unwrap();
    let mut found = vec![0; bytes];
    let (mut done, mut step) = (0, 1);
    // Read in pieces that differ from those of the response.
    while done < bytes {
        let count = (bytes - done).min(step);
        let place = at + done as u64;
        reading
            .read_exact_at(&mut found[done..done + count], place)
            .unwrap();
        done += count;
        step = step * 3 + 1;
    }
    found
}
