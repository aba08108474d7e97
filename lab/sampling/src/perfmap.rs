//! Names of code that runtimes compiled, from the files `/tmp/perf-PID.map` that they write if so configured.

use std::collections::{BTreeSet, HashMap};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use nix::fcntl::OFlag;
use procfs::process::Process;

use crate::files;

/// Larger files are not read.
const LARGEST: u64 = 64 * 1024 * 1024;
/// Longer names are truncated.
const LONGEST_NAME: usize = 1000;

/// Looks up the names of addresses of a process; empty without a file.
pub(crate) fn names(pid: i32, addresses: &[u64]) -> HashMap<u64, String> {
    let text = read(pid).unwrap_or_default();
    parse(&text, addresses)
}

/// The file of a process, as it sees it; only if the process's own user wrote it.
fn read(pid: i32) -> Option<Vec<u8>> {
    let status = Process::new(pid)
        .and_then(|process| process.status())
        .ok()?;
    // A process in a container has another number there.
    let own = status
        .nspid
        .as_ref()
        .and_then(|ids| ids.last())
        .copied()
        .unwrap_or(pid);
    let path = PathBuf::from(format!("/proc/{pid}/root/tmp/perf-{own}.map"));
    let file = files::open_regular(&path, OFlag::O_NOFOLLOW, LARGEST)?;
    let owner = file.metadata().ok()?.uid();
    if owner != status.euid {
        return None;
    }
    files::read(&file, LARGEST)
}

/// Each line is `START SIZE NAME`, the numbers hexadecimal. Code that was compiled later may be in the place of other
/// code: the last line that holds an address names it.
pub fn parse(text: &[u8], addresses: &[u64]) -> HashMap<u64, String> {
    let mut names = HashMap::new();
    let mut unnamed: BTreeSet<u64> = addresses.iter().copied().collect();
    // The last line first, so that each address is named once, however many lines hold it.
    for line in text.rsplit(|byte| *byte == b'\n') {
        let Some((start, size, name)) = parts(line) else {
            continue;
        };
        while let Some(address) = unnamed.range(start..).next().copied()
            && address - start < size
        {
            unnamed.remove(&address);
            let name = String::from_utf8_lossy(&name[..name.len().min(LONGEST_NAME)]);
            names.insert(address, name.trim().to_owned());
        }
    }
    names
}

fn parts(line: &[u8]) -> Option<(u64, u64, &[u8])> {
    let mut parts = line.splitn(3, |byte| *byte == b' ');
    let start = number(parts.next()?)?;
    let size = number(parts.next()?)?;
    let name = parts.next()?.trim_ascii();
    (!name.is_empty()).then_some((start, size, name))
}

fn number(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_that_holds_an_address_names_it() {
        let text = b"100 20 first one\n0x200 10 JS:*second file.js:3\n110 8 third\nbroken\n300 zz no\n400 1 \n";
        let names = parse(
            text,
            &[
                0xff, 0x100, 0x10f, 0x110, 0x117, 0x118, 0x20f, 0x210, 0x300, 0x400,
            ],
        );
        let name = |address| names.get(&address).map(String::as_str);
        assert_eq!(name(0x100), Some("first one"));
        assert_eq!(name(0x110), Some("third"));
        assert_eq!(name(0x117), Some("third"));
        assert_eq!(name(0x118), Some("first one"));
        assert_eq!(name(0x20f), Some("JS:*second file.js:3"));
        for nothing in [0xff, 0x210, 0x300, 0x400] {
            assert_eq!(name(nothing), None);
        }
    }

    #[test]
    fn ranges_up_to_the_last_address_are_fine() {
        let names = parse(b"ffffffffffffffff ffffffffffffffff last\n", &[u64::MAX]);
        assert_eq!(names[&u64::MAX], "last");
    }

    #[test]
    fn a_file_is_taken_from_the_process_only_if_it_is_its_own() {
        let pid = std::process::id() as i32;
        let path = PathBuf::from(format!("/tmp/perf-{pid}.map"));
        std::fs::write(&path, "1000 10 mine\n").unwrap();
        assert_eq!(names(pid, &[0x1008])[&0x1008], "mine");
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", &path).unwrap();
        assert!(read(pid).is_none());
        std::fs::remove_file(&path).unwrap();
    }
}
