//! Names of threads.

use std::collections::HashMap;
use std::fs;

/// Most threads whose names are stored.
const MOST: usize = 100_000;

/// Names of threads by their ids.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    names: HashMap<i32, String>,
    ended: Vec<i32>,
}

impl Threads {
    /// The name of a thread, read at its first sample; threads that differ by their numbers have one name.
    pub(crate) fn name(&mut self, pid: i32, tid: i32) -> &str {
        if self.names.len() >= MOST {
            self.names.clear();
        }
        self.names.entry(tid).or_insert_with(|| {
            let name = fs::read(format!("/proc/{pid}/task/{tid}/comm"));
            name.map_or_else(|_| "[ended]".to_owned(), |name| group(&name))
        })
    }

    pub(crate) fn named(&mut self, tid: i32, name: &[u8]) {
        if self.names.contains_key(&tid) {
            self.names.insert(tid, group(name));
        }
    }

    pub(crate) fn forked(&mut self, tid: i32, parent: i32) {
        if let Some(name) = self.names.get(&parent).cloned()
            && self.names.len() < MOST
        {
            self.names.insert(tid, name);
        }
    }

    /// The name stays until the next [`Threads::sweep`], for other records of the thread.
    pub(crate) fn exited(&mut self, tid: i32) {
        self.ended.push(tid);
    }

    /// Drops the names of threads that have ended.
    pub(crate) fn sweep(&mut self) {
        for tid in self.ended.drain(..) {
            self.names.remove(&tid);
        }
    }
}

/// The group of a thread, as reports show it: `http-*` for `http-0` and `http-1`.
fn group(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name);
    lab_profile::thread_group(name.trim()).replace(char::is_control, "?")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_differ_by_numbers_have_one_name() {
        for (name, expected) in [
            ("http-12\n", "http-*"),
            ("main", "main"),
            ("7", "*"),
            ("v8:1 work", "v8:1 work"),
            ("a\u{1b}b", "a?b"),
        ] {
            assert_eq!(group(name.as_bytes()), expected);
        }
    }

    #[test]
    fn forked_threads_have_the_name_of_their_parents() {
        let mut threads = Threads::default();
        let pid = std::process::id() as i32;
        let own = threads.name(pid, pid).to_owned();
        threads.forked(1 << 30, pid);
        assert_eq!(threads.name(pid, 1 << 30), own);
        threads.named(1 << 30, b"other");
        assert_eq!(threads.name(pid, 1 << 30), "other");
        threads.exited(1 << 30);
        assert_eq!(threads.name(pid, 1 << 30), "other", "for records of before");
        threads.sweep();
        assert_eq!(threads.name(pid, 1 << 30), "[ended]");
    }
}
