//! Runs each target on its files in `corpus/`: found faults, and seeds.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_fuzz::targets;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries =
        fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string();
    entries.map(|entry| name(entry).unwrap()).collect()
}

#[test]
fn every_target_stands_what_was_found() {
    for target in targets() {
        let folder = corpus().join(target.name);
        let inputs = names(&folder);
        assert!(!inputs.is_empty(), "{}: nothing to begin with", target.name);
        for input in inputs {
            println!("{} {input}", target.name);
            target.play(&fs::read(folder.join(input)).unwrap());
        }
        target.play(b"");
        target.play(&[0xff]);
    }
}

#[test]
fn each_folder_of_the_corpus_is_of_a_target() {
    let known: BTreeSet<String> = targets().map(|target| target.name.to_owned()).collect();
    assert_eq!(known, names(&corpus()));
}
