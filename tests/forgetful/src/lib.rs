//! A disk that forgets. A killed process leaves its writes with the system, so killing can't show that a sync is
//! missing; this can. It is a file system (FUSE) that tracks, beside what programs see, what a power failure would
//! leave: everything synced, and of the rest a subset by seed: nothing, some pages, the length without the bytes, names
//! without their files, folder changes in part. [`Mounted::crash`] takes such an image at any moment and any number of
//! times, while the program under test continues; [`Mounted::crashes`] takes them between seeded calls of the file
//! system.
//!
//! It also fails on request ([`Fault`]) and lies about syncs ([`Lie`]): a test that passes on a disk that lies tests
//! nothing.
//!
//! The file system is a process of its own, the program `forgetful`: a process that maps a file which it serves itself,
//! as SQLite does, deadlocks sooner or later.

mod disk;
mod image;
mod message;
mod mount;
mod mounted;
mod rules;
mod serve;

pub use mounted::{Crash, Crashes, Mounted};
pub use rules::{Call, Fault, Lie};
pub use serve::serve;

/// Returns the seed of a test: `PLIMSOLL_SEED`, or `otherwise`.
pub fn seed(otherwise: u64) -> u64 {
    number("PLIMSOLL_SEED", otherwise)
}

/// Returns the number of crashes of a test: `PLIMSOLL_CRASHES`, or `otherwise`.
pub fn crashes(otherwise: u64) -> u64 {
    number("PLIMSOLL_CRASHES", otherwise)
}

fn number(name: &str, otherwise: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{name} is not a whole number: {text}")),
        Err(_) => otherwise,
    }
}
