//! The disk's process. A test starts it with a folder and a seed; its input and output belong to the test.

use std::path::Path;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, folder, seed] = &arguments[..] else {
        eprintln!("usage: forgetful FOLDER SEED (started by tests)");
        std::process::exit(2);
    };
    let Ok(seed) = seed.parse() else {
        eprintln!("forgetful: the seed is not a whole number: {seed}");
        std::process::exit(2);
    };
    plimsoll_forgetful::serve(Path::new(folder), seed);
}
