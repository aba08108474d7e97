//! The disk's process: mounts, and serves the test's requests until the test ends.

use std::io::{BufRead, Write, stdin, stdout};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::message::{Ask, Tell};
use crate::mount::Serving;

fn tell(what: &Tell) {
    let line = serde_json::to_string(what).expect("messages are JSON");
    let mut out = stdout().lock();
    // A test that doesn't read has ended; so does this process, at the end of its input.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// Serves a disk at a folder until the input ends.
pub fn serve(folder: &Path, seed: u64) {
    let disk = match Serving::start(folder, seed) {
        Ok(disk) => disk,
        Err(error) => return tell(&Tell::Failed(error.to_string())),
    };
    tell(&Tell::Mounted);
    let (go_on, waits) = sync_channel(1);
    let waits = Arc::new(Mutex::new(waits));
    for line in stdin().lock().lines().map_while(Result::ok) {
        match serde_json::from_str(&line) {
            Ok(ask) => answer(&disk, ask, seed, (&go_on, &waits)),
            Err(error) => tell(&Tell::Failed(error.to_string())),
        }
    }
    // A waiting call continues, so that the disk can be unmounted.
    drop(go_on);
}

fn answer(
    disk: &Serving,
    ask: Ask,
    seed: u64,
    (go_on, waits): (&SyncSender<()>, &Arc<Mutex<Receiver<()>>>),
) {
    match ask {
        Ask::Crash(folder) => match disk.crash().write_to(&folder) {
            Ok(()) => tell(&Tell::Done),
            Err(error) => tell(&Tell::Failed(error.to_string())),
        },
        Ask::Crashes {
            count,
            most_calls,
            below,
        } => {
            // Before the first image, which may be taken at once.
            tell(&Tell::Done);
            crashes(disk, seed, (count, most_calls, below), waits.clone());
        }
        Ask::GoOn => {
            let _ = go_on.send(());
        }
        Ask::Fail(fault) => {
            disk.rules(|rules| rules.faults.push(fault));
            tell(&Tell::Done);
        }
        Ask::Heal => {
            disk.rules(|rules| rules.faults.clear());
            tell(&Tell::Done);
        }
        Ask::Lie(lie) => {
            disk.rules(|rules| rules.lies.push(lie));
            tell(&Tell::Done);
        }
    }
}

fn crashes(
    disk: &Serving,
    seed: u64,
    (count, most_calls, below): (u64, u64, PathBuf),
    waits: Arc<Mutex<Receiver<()>>>,
) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed ^ 0x6d6f_6d65_6e74_7321);
    let (mut next, mut left) = (1, count);
    disk.at_calls(move |moment| {
        if left == 0 || moment.calls < next {
            return;
        }
        left -= 1;
        next = moment.calls + 1 + rng.next_u64() % most_calls.max(1);
        let folder = below.join((count - left).to_string());
        match moment.image().write_to(&folder) {
            Ok(()) => tell(&Tell::Image {
                folder,
                call: moment.calls,
            }),
            Err(error) => return tell(&Tell::Failed(error.to_string())),
        }
        let _ = waits.lock().expect("nobody panics with it").recv();
    });
}
