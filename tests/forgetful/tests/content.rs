//! Content on a disk that forgets: a settled offset is there after every crash, with its bytes, and finished content is
//! whole.

mod common;

use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use common::{CONTROL, MOST_CALLS, Verdict, crash_while, is_found_out, survives};
use groupware_content::{ContentHash, ContentStore, Found};
use plimsoll_forgetful::{Lie, Mounted, seed};

const WRITERS: u64 = 3;
const CHUNK_BYTES: usize = 9_000;

/// The acknowledged uploads and content.
#[derive(Debug, Clone, Default)]
struct Known {
    /// Uploads under way: name, length, settled offset.
    settled: Vec<(String, u64, u64)>,
    /// Finished content and its length.
    finished: Vec<(ContentHash, u64)>,
}

/// The bytes of an upload: every third upload has those of its neighbour, so that content is shared.
fn bytes(writer: u64, number: u64, length: usize) -> Vec<u8> {
    let kind = if number.is_multiple_of(3) {
        0
    } else {
        writer + 1
    };
    let seed = kind * 1_000_003 + number;
    (0..length as u64)
        .map(|at| (seed * 31 + at * 7 + at / 251) as u8)
        .collect()
}

fn length(number: u64) -> usize {
    (number as usize * 7_919) % 60_000 + 1
}

fn upload(store: &ContentStore, known: &Mutex<Known>, writer: u64, number: u64) {
    let bytes = bytes(writer, number, length(number));
    let (name, length) = (format!("{writer}-{number}"), bytes.len() as u64);
    let mut upload = store.create_upload(&name, length).unwrap();
    for chunk in bytes.chunks(CHUNK_BYTES) {
        upload.append(chunk).unwrap();
        upload.settle().unwrap();
        let mut known = known.lock().unwrap();
        known.settled.retain(|(other, _, _)| *other != name);
        known.settled.push((name.clone(), length, upload.offset()));
    }
    let pin = upload.finish().unwrap();
    let mut known = known.lock().unwrap();
    known.settled.retain(|(other, _, _)| *other != name);
    known.finished.push((pin.hash(), length));
    drop(known);
    // Something refers to it now.
    upload.compact();
}

fn whole(store: &ContentStore, known: &Mutex<Known>, writer: u64, number: u64) {
    let bytes = bytes(writer, number, length(number));
    let mut whole = store
        .create_whole(&format!("w{writer}-{number}"), None)
        .unwrap();
    for chunk in bytes.chunks(CHUNK_BYTES) {
        whole.append(chunk).unwrap();
    }
    let pin = whole.finish().unwrap();
    let finished = (pin.hash(), bytes.len() as u64);
    known.lock().unwrap().finished.push(finished);
}

fn number_of(name: &str) -> (u64, u64) {
    let (writer, number) = name.split_once('-').expect("writer-number");
    (writer.parse().unwrap(), number.parse().unwrap())
}

/// Returns what is wrong with a content store after a crash at which this was known.
fn verdict(folder: &Path, known: &Known) -> Verdict {
    let store = ContentStore::open(folder).map_err(|error| error.to_string())?;
    for (hash, length) in &known.finished {
        let found = store
            .verify(*hash, *length)
            .map_err(|error| error.to_string())?;
        if found != Found::Whole {
            return Err(format!("content of {length} bytes was finished: {found:?}"));
        }
    }
    for (name, length, offset) in &known.settled {
        let upload = store
            .resume_upload(name, *length)
            .map_err(|error| error.to_string())?;
        if upload.offset() < *offset {
            return Err(format!(
                "{name}: {offset} was settled, {} is there",
                upload.offset()
            ));
        }
        let there = fs::read(folder.join("uploads").join(name))
            .map_err(|error| format!("{name}: {error}"))?;
        let (writer, number) = number_of(name);
        let right = bytes(writer, number, *length as usize);
        let end = upload.offset() as usize;
        if there[..end] != right[..end] {
            return Err(format!("{name}: other bytes before {end}"));
        }
    }
    Ok(())
}

fn run(disk: &Mounted, crashes: u64) -> (u64, Option<String>) {
    let folder = disk.path().join("data");
    // The folder's own name is the duty of the records' store.
    fs::create_dir(&folder).unwrap();
    fs::File::open(disk.path()).unwrap().sync_all().unwrap();
    let store = ContentStore::open(&folder).unwrap();
    let known = Mutex::new(Known::default());
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (store, known, stop) = (&store, &known, &stop);
            scope.spawn(move || {
                for number in (0..).take_while(|_| !stop.load(Relaxed)) {
                    if number % 4 == 1 {
                        whole(store, known, writer, number);
                    } else {
                        upload(store, known, writer, number);
                    }
                }
            });
        }
        let outcome = crash_while(
            disk,
            (crashes, MOST_CALLS),
            || known.lock().unwrap().clone(),
            |image, known| verdict(&image.join("data"), &known),
        );
        stop.store(true, Relaxed);
        outcome
    })
}

#[test]
fn settled_offsets_and_finished_content_survive() {
    survives(150, run);
}

/// Without the sync of a file, or of a folder, something acknowledged is lost: this test detects it.
#[test]
fn a_sync_left_out_is_found_out() {
    let left_out = [
        Lie::Files("/uploads/".to_owned()),
        Lie::Folders("/uploads".to_owned()),
        Lie::Folders("/content/".to_owned()),
    ];
    for lie in left_out {
        is_found_out(seed(2), lie, CONTROL, run);
    }
}
