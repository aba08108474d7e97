//! Content and uploads on a real file system: crashes, damage, equal content, sweeps.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use groupware_content::{ContentError, ContentHash, ContentStore, Found, Upload, unnamed_file};
use proptest::prelude::*;

fn bytes(seed: u8, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    blake3::Hasher::new()
        .update(&[seed])
        .finalize_xof()
        .fill(&mut bytes);
    bytes
}

fn open() -> (tempfile::TempDir, ContentStore) {
    let folder = tempfile::tempdir().unwrap();
    let store = ContentStore::open(folder.path()).unwrap();
    (folder, store)
}

fn path(folder: &Path, hash: ContentHash) -> PathBuf {
    let text = hash.to_string();
    folder.join("content").join(&text[..2]).join(&text[2..])
}

fn read(store: &ContentStore, hash: ContentHash, length: usize) -> Vec<u8> {
    let mut content = Vec::new();
    let file = store.read(hash).unwrap();
    file.take(length as u64).read_to_end(&mut content).unwrap();
    content
}

/// The mode of a file or folder, without its type.
fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn nobody_else_reads_content() {
    let (folder, store) = open();
    let folders = ["content", "uploads"].map(|name| folder.path().join(name));
    assert_eq!(folders.each_ref().map(|folder| mode(folder)), [0o700; 2]);
    let mut whole = store.create_whole("w1", None).unwrap();
    whole.append(b"text").unwrap();
    let pin = whole.finish().unwrap();
    let file = path(folder.path(), pin.hash());
    assert_eq!([mode(file.parent().unwrap()), mode(&file)], [0o700, 0o600]);
    let _upload = store.create_upload("u1", 4).unwrap();
    assert_eq!(mode(&folders[1].join("u1")), 0o600);
    // The mode in earlier versions.
    for folder in &folders {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    }
    drop(store);
    ContentStore::open(folder.path()).unwrap();
    assert_eq!(folders.each_ref().map(|folder| mode(folder)), [0o700; 2]);
}

/// The bytes that a file uses on the disk.
fn disk_bytes(path: &Path) -> u64 {
    fs::metadata(path).unwrap().blocks() * 512
}

#[test]
fn room_is_taken_as_content_comes_in() {
    const MIB: u64 = 1 << 20;
    let (folder, store) = open();
    let uploads = folder.path().join("uploads");
    let mut whole = store.create_whole("w1", Some(256 * MIB)).unwrap();
    let mut upload = store.create_upload("u1", 256 * MIB).unwrap();
    for name in ["w1", "u1"] {
        assert!(disk_bytes(&uploads.join(name)) <= 65 * MIB, "{name}");
    }
    let part = vec![7; MIB as usize];
    for _ in 0..66 {
        whole.append(&part).unwrap();
        upload.append(&part).unwrap();
    }
    for name in ["w1", "u1"] {
        let bytes = disk_bytes(&uploads.join(name));
        assert!((66 * MIB..=130 * MIB).contains(&bytes), "{name}: {bytes}");
    }
    upload.settle().unwrap();
    drop(upload);
    let mut upload = store.resume_upload("u1", 256 * MIB).unwrap();
    assert_eq!(upload.offset(), 66 * MIB);
    upload.append(&part).unwrap();
    assert!(disk_bytes(&uploads.join("u1")) <= 132 * MIB);
    // Content that is shorter than announced has its actual length.
    let pin = whole.finish().unwrap();
    let file = path(folder.path(), pin.hash());
    assert_eq!(fs::metadata(file).unwrap().len(), 66 * MIB);
    // No disk has room for this; nothing is allocated.
    assert!(matches!(
        store.create_whole("w2", Some(1 << 60)),
        Err(ContentError::Full)
    ));
    assert!(!uploads.join("w2").exists());
}

#[test]
fn an_unnamed_file_leaves_the_reserve_of_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let file = unnamed_file(folder.path(), 70_000).unwrap();
    assert!(file.metadata().unwrap().blocks() * 512 >= 70_000);
    let disk = nix::sys::statvfs::statvfs(folder.path()).unwrap();
    let available = disk.blocks_available() * disk.fragment_size();
    let refused = unnamed_file(folder.path(), available).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::StorageFull);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn an_upload_in_chunks_becomes_content() {
    let (folder, store) = open();
    let content = bytes(1, 100_000);
    let hash = ContentHash::of(&content);
    let mut upload = store.create_upload("u1", content.len() as u64).unwrap();
    for chunk in content.chunks(30_000) {
        upload.append(chunk).unwrap();
        upload.settle().unwrap();
    }
    assert_eq!(upload.offset(), 100_000);
    let pin = upload.finish().unwrap();
    assert_eq!(pin.hash(), hash);
    assert_eq!(read(&store, hash, content.len()), content);
    upload.compact();
    assert_eq!(
        fs::metadata(path(folder.path(), hash)).unwrap().len(),
        100_000
    );
    assert!(store.upload_files().unwrap().is_empty());
    assert_eq!(store.verify(hash, 100_000).unwrap(), Found::Whole);
}

#[test]
fn what_is_not_settled_can_be_discarded_and_is_lost_with_the_process() {
    let (_folder, store) = open();
    let content = bytes(2, 5000);
    let mut upload = store.create_upload("u", 5000).unwrap();
    upload.append(&content[..2000]).unwrap();
    upload.settle().unwrap();
    upload.append(&bytes(3, 1000)).unwrap();
    upload.discard();
    upload.append(&content[2000..2500]).unwrap();
    assert_eq!((upload.offset(), upload.written()), (2000, 2500));
    drop(upload);
    let mut upload = store.resume_upload("u", 5000).unwrap();
    assert_eq!(upload.offset(), 2000);
    assert!(matches!(
        upload.append(&bytes(3, 3001)),
        Err(ContentError::TooLong)
    ));
    upload.append(&content[2000..]).unwrap();
    assert_eq!(upload.finish().unwrap().hash(), ContentHash::of(&content));
}

#[test]
fn blocks_that_lie_well_pass_the_page_cache_by_and_nothing_is_lost_between() {
    let (_folder, store) = open();
    let content = bytes(9, 40_000);
    // Direct writes depend on the alignment in memory and in the file.
    let mut memory = vec![0; content.len() + 4096];
    let at = memory.as_ptr().align_offset(4096);
    memory[at..at + content.len()].copy_from_slice(&content);
    let aligned = &memory[at..at + content.len()];
    let mut upload = store.create_upload("u", content.len() as u64).unwrap();
    for (from, to) in [
        (0, 8192),
        (8192, 12_388),
        (12_388, 20_480),
        (20_480, 32_768),
    ] {
        upload.append(&aligned[from..to]).unwrap();
        upload.settle().unwrap();
    }
    upload.append(&aligned[32_768..36_864]).unwrap();
    upload.discard();
    drop(upload);
    let mut upload = store.resume_upload("u", content.len() as u64).unwrap();
    assert_eq!(upload.offset(), 32_768);
    upload.append(&aligned[32_768..]).unwrap();
    let hash = upload.finish().unwrap().hash();
    assert_eq!(hash, ContentHash::of(&content));
    assert_eq!(store.verify(hash, 40_000).unwrap(), Found::Whole);
    assert_eq!(read(&store, hash, content.len()), content);
}

#[test]
fn an_upload_takes_no_more_descriptors_than_it_says() {
    let (folder, store) = open();
    let file = folder.path().join("uploads/u");
    let descriptors = || {
        let all = fs::read_dir("/proc/self/fd").unwrap();
        let targets = all.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
        targets.filter(|target| *target == file).count()
    };
    let mut upload = store.create_upload("u", 5000).unwrap();
    upload.append(&bytes(1, 5000)).unwrap();
    upload.settle().unwrap();
    assert!((1..=Upload::DESCRIPTORS).contains(&descriptors()));
    drop(upload);
    let upload = store.resume_upload("u", 5000).unwrap();
    assert!((1..=Upload::DESCRIPTORS).contains(&descriptors()));
    drop(upload);
    assert_eq!(descriptors(), 0);
}

#[test]
fn a_finished_upload_that_was_not_retired_finishes_again() {
    let (folder, store) = open();
    let content = bytes(4, 9000);
    let mut upload = store.create_upload("u", 9000).unwrap();
    upload.append(&content).unwrap();
    drop(upload.finish().unwrap());
    drop(upload);
    let mut upload = store.resume_upload("u", 9000).unwrap();
    assert_eq!(upload.offset(), 9000);
    let hash = upload.finish().unwrap().hash();
    assert_eq!(hash, ContentHash::of(&content));
    upload.compact();
    assert_eq!(fs::metadata(path(folder.path(), hash)).unwrap().len(), 9000);
}

#[test]
fn an_upload_writes_nothing_into_what_is_content() {
    let (folder, store) = open();
    let content = bytes(6, 9000);
    let mut upload = store.create_upload("u", 9000).unwrap();
    upload.append(&content).unwrap();
    assert!(!upload.is_content());
    let hash = upload.finish().unwrap().hash();
    assert!(upload.is_content());
    drop(upload);
    // Its record was not committed, another refers to the same content, and a sweep runs.
    let sweep = || {
        let mut sweep = store.sweep_folder(hash.as_bytes()[0]).unwrap().unwrap();
        sweep.keep(&hash, 9000);
        sweep.finish().unwrap().trimmed
    };
    assert_eq!(sweep(), 0);
    assert_eq!(store.resume_upload("u", 9000).unwrap().offset(), 9000);
    // Another file has replaced it: the old one is still proved, and gets that place again.
    let mut whole = store.create_whole("w", None).unwrap();
    whole.append(&content).unwrap();
    assert_eq!(whole.finish().unwrap().hash(), hash);
    let mut upload = store.resume_upload("u", 9000).unwrap();
    assert_eq!((upload.offset(), upload.is_content()), (9000, false));
    assert_eq!(upload.finish().unwrap().hash(), hash);
    assert!(upload.is_content());
    drop(upload);
    assert_eq!(sweep(), 0);

    // If the proof is cut off in any way, the upload starts again in another file.
    let file = path(folder.path(), hash);
    let disk = File::options().write(true).open(&file).unwrap();
    disk.set_len(9000).unwrap();
    let mut upload = store.resume_upload("u", 9000).unwrap();
    assert_eq!((upload.offset(), upload.is_content()), (0, false));
    upload.append(&bytes(7, 9000)).unwrap();
    upload.settle().unwrap();
    assert_eq!(store.verify(hash, 9000).unwrap(), Found::Whole);
    assert_eq!(read(&store, hash, content.len()), content);
    assert_eq!(fs::metadata(&file).unwrap().len(), 9000);
    assert_eq!(
        upload.finish().unwrap().hash(),
        ContentHash::of(&bytes(7, 9000))
    );
}

/// A crash may precede the record of the new length, or the cut of the file.
#[test]
fn an_upload_that_is_laid_out_anew_is_found_at_either_length() {
    const LAID_OUT: u64 = 1 << 20;
    let content = bytes(1, 200_000);
    // In a page of the old tail, one page before it, and far from it; settled in turn.
    for length in [LAID_OUT - 1, LAID_OUT - 4096, 300_000, 200_000] {
        for settlings in 1..3 {
            let (_folder, store) = open();
            let mut upload = store.create_upload("u", LAID_OUT).unwrap();
            for piece in content.chunks(content.len().div_ceil(settlings)) {
                upload.append(piece).unwrap();
                upload.settle().unwrap();
            }
            upload.append(b"lost").unwrap();
            upload.reserve(length).unwrap();
            assert_eq!(upload.offset(), 200_000);
            drop(upload);
            let upload = store.resume_upload("u", LAID_OUT).unwrap();
            assert_eq!(upload.offset(), 200_000, "{length} {settlings}");
            drop(upload);
            let mut upload = store.resume_upload("u", length).unwrap();
            assert_eq!(upload.offset(), 200_000, "{length} {settlings}");
            let rest = bytes(2, usize::try_from(length).unwrap() - content.len());
            upload.append(&rest).unwrap();
            let hash = upload.finish().unwrap().hash();
            assert_eq!(hash, ContentHash::of(&[&content[..], &rest].concat()));
        }
    }
}

#[test]
fn an_upload_goes_on_with_a_length_that_is_told_late() {
    let (_folder, store) = open();
    let mut upload = store.create_upload("u", 1 << 20).unwrap();
    upload.allow(5);
    assert!(matches!(
        upload.append(b"abcdef"),
        Err(ContentError::TooLong)
    ));
    upload.append(b"abcde").unwrap();
    upload.settle().unwrap();
    assert!(matches!(upload.reserve(4), Err(ContentError::TooLong)));
    assert!(matches!(
        upload.reserve(2 << 20),
        Err(ContentError::TooLong)
    ));
    upload.reserve(8).unwrap();
    upload.truncate(8).unwrap();
    for piece in [b"f", b"g"] {
        upload.append(piece).unwrap();
        upload.settle().unwrap();
        let offset = upload.offset();
        drop(upload);
        upload = store.resume_upload("u", 8).unwrap();
        assert_eq!(upload.offset(), offset);
    }
    let mut whole = store.create_upload("w", 16).unwrap();
    upload.append(b"h").unwrap();
    upload.settle().unwrap();
    for _ in 0..2 {
        whole.append_all_of(&upload).unwrap();
    }
    let hash = whole.finish().unwrap().hash();
    assert_eq!(read(&store, hash, 16), b"abcdefghabcdefgh");
}

#[test]
fn equal_content_is_kept_once_and_damaged_content_is_replaced() {
    let (folder, store) = open();
    let content = bytes(5, 70_000);
    let put = |name: &str| {
        let mut whole = store.create_whole(name, None).unwrap();
        for part in content.chunks(10_000) {
            whole.append(part).unwrap();
        }
        whole.finish().unwrap().hash()
    };
    let hash = put("a");
    let file = path(folder.path(), hash);
    let first = fs::metadata(&file).unwrap().ino();
    assert_eq!(put("b"), hash);
    // It is not read for comparison: the duration would reveal that it exists.
    let second = fs::metadata(&file).unwrap().ino();
    assert_ne!(second, first);
    assert_eq!(fs::metadata(&file).unwrap().nlink(), 1);
    assert!(store.upload_files().unwrap().is_empty());

    let disk = File::options().write(true).open(&file).unwrap();
    disk.write_all_at(b"!", 33_333).unwrap();
    assert_eq!(store.verify(hash, 70_000).unwrap(), Found::Damaged);
    put("c");
    assert_eq!(store.verify(hash, 70_000).unwrap(), Found::Whole);
    assert_ne!(fs::metadata(&file).unwrap().ino(), second);
    fs::remove_file(&file).unwrap();
    assert_eq!(store.verify(hash, 70_000).unwrap(), Found::Nothing);
}

#[test]
fn names_reach_no_other_folder() {
    let (_folder, store) = open();
    for name in ["", ".", "..", "../x", "a/b", "a\0b", "ä", &"x".repeat(65)] {
        assert!(
            matches!(store.create_upload(name, 1), Err(ContentError::BadName)),
            "{name:?}"
        );
        assert!(matches!(
            store.remove_upload(name),
            Err(ContentError::BadName)
        ));
    }
    store.remove_upload("not-there").unwrap();
}

#[test]
fn a_length_that_no_disk_has_is_full() {
    let (_folder, store) = open();
    for length in [1 << 50, (1 << 62) - 1, u64::MAX] {
        let error = store.create_upload("u", length).unwrap_err();
        assert!(matches!(error, ContentError::Full), "{error:?}");
    }
    assert!(store.upload_files().unwrap().is_empty());
}

#[test]
fn content_that_is_given_up_leaves_nothing() {
    let (_folder, store) = open();
    let mut whole = store.create_whole("w", Some(1000)).unwrap();
    whole.append(b"abc").unwrap();
    drop(whole);
    assert!(store.upload_files().unwrap().is_empty());
}

#[test]
fn the_sweep_takes_what_nothing_refers_to_and_nothing_else() {
    let (folder, store) = open();
    let mut upload = store.create_upload("u", 3).unwrap();
    upload.append(b"abc").unwrap();
    // Finished and not retired, without its own name: the content still has its tail.
    let kept = upload.finish().unwrap().hash();
    store.remove_upload("u").unwrap();
    let put = |content: &[u8]| {
        let mut whole = store.create_whole("w", None).unwrap();
        whole.append(content).unwrap();
        whole.finish().unwrap()
    };
    let pinned = put(b"pinned");
    let gone = put(b"gone").hash();
    let pinned_meanwhile = put(b"meanwhile").hash();
    fs::write(folder.path().join("content/00/readme"), "no content").unwrap();
    let (mut removed, mut trimmed, mut next) = (0, 0, Some(0));
    while let Some(first) = next {
        let mut sweep = store.sweep_from(first, 2).unwrap().unwrap();
        assert!(store.sweep_folder(first).unwrap().is_none());
        next = sweep.folders().end().checked_add(1);
        sweep.keep(&kept, 3);
        drop(store.pin(pinned_meanwhile));
        let swept = sweep.finish().unwrap();
        (removed, trimmed) = (removed + swept.removed, trimmed + swept.trimmed);
    }
    assert_eq!((removed, trimmed), (1, 1));
    assert_eq!(fs::metadata(path(folder.path(), kept)).unwrap().len(), 3);
    assert_eq!(store.verify(pinned.hash(), 6).unwrap(), Found::Whole);
    assert_eq!(store.verify(pinned_meanwhile, 9).unwrap(), Found::Whole);
    assert_eq!(store.verify(gone, 4).unwrap(), Found::Nothing);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever part of the last chunk reached the disk, in any order, an upload resumes at the
    /// last settled chunk or, if all of it is there, at the next one.
    #[test]
    fn power_failures_never_move_the_offset_past_what_is_there(
        chunks in prop::collection::vec(1_usize..20_000, 1..6),
        lost in prop::collection::vec(0_usize..20_000, 0..3),
        slot_lost: bool,
    ) {
        let (folder, store) = open();
        let length: usize = chunks.iter().sum();
        let content = bytes(9, length);
        let mut upload = store.create_upload("u", length as u64).unwrap();
        let (last, others) = chunks.split_last().unwrap();
        let mut at = 0;
        for chunk in others {
            upload.append(&content[at..at + chunk]).unwrap();
            at += chunk;
            upload.settle().unwrap();
        }
        let file = folder.path().join("uploads/u");
        let before = fs::read(&file).unwrap();
        upload.append(&content[at..at + last]).unwrap();
        upload.settle().unwrap();
        drop(upload);

        // Simulates a power failure during the last settling: bytes of the chunk, or its slot, have
        // their old values.
        let mut after = fs::read(&file).unwrap();
        let mut any_lost = slot_lost;
        for byte in lost.iter().filter(|byte| *byte < last) {
            any_lost |= after[at + byte] != before[at + byte];
            after[at + byte] = before[at + byte];
        }
        if slot_lost {
            let tail = length..after.len();
            after[tail.clone()].copy_from_slice(&before[tail]);
        }
        fs::write(&file, &after).unwrap();
        let mut upload = store.resume_upload("u", length as u64).unwrap();
        let expected = if any_lost { at } else { at + last };
        prop_assert_eq!(upload.offset(), expected as u64);
        upload.append(&content[expected..]).unwrap();
        prop_assert_eq!(upload.finish().unwrap().hash(), ContentHash::of(&content));
    }
}
