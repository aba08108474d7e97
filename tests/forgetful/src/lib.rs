//! A disk that forgets. A killed process leaves what it wrote with the system, so killing can't show
//! that a sync is missing; this can. It is a file system (FUSE) that knows, beside what
//! programs see, what a power failure would leave: all that was synced, and of the rest whatever a seed
//! says: nothing, some pages of it, the length without the bytes, names without their files, changes of
//! folders in part. [`Mounted::crash`] takes such an image at any moment, as often as one likes, while
//! the program under test goes on; [`Mounted::crashes`] takes them between seeded calls of the file system.
//!
//! It also fails when told ([`Fault`]), and lies about syncs ([`Lie`]): a test that passes on a disk
//! that lies tests nothing.
//!
//! The file system is a process of its own, the program `forgetful`: a process that maps a file which it
//! serves itself, as SQLite does, waits for itself sooner or later.

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

/// The seed of a test: `PLIMSOLL_SEED`, or the one given.
pub fn seed(otherwise: u64) -> u64 {
    number("PLIMSOLL_SEED", otherwise)
}

/// How many crashes a test takes: `PLIMSOLL_CRASHES`, or as many as given.
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
