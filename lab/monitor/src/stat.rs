//! One line of `/proc/PID/stat`.

use std::fs;
use std::path::Path;

/// The needed fields of `/proc/PID/stat`. Parsed here and not by the library: this runs for each new
/// process of the machine, and the library's parser fills fifty fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) parent: i32,
    /// The process that began its session.
    pub(crate) session: i32,
    /// It has ended, and its parent has not waited for it.
    pub(crate) is_zombie: bool,
    pub(crate) user_ticks: u64,
    pub(crate) system_ticks: u64,
    /// CPU time of ended children that the process waited for, with their own children.
    pub(crate) ended_children_ticks: u64,
    pub(crate) threads: u64,
    /// Ticks after boot; with the id it names a process for good.
    pub(crate) started: u64,
    pub(crate) rss_pages: u64,
}

impl Stat {
    /// User and system time of the process itself.
    pub(crate) fn ticks(&self) -> u64 {
        self.user_ticks + self.system_ticks
    }

    pub(crate) fn read(proc: &Path, pid: i32) -> Option<Self> {
        Self::parse(&fs::read(proc.join(pid.to_string()).join("stat")).ok()?)
    }

    /// `PID (NAME) STATE PARENT …`; the name may hold anything, so fields count from its end.
    pub(crate) fn parse(line: &[u8]) -> Option<Self> {
        let end = line.iter().rposition(|b| *b == b')')?;
        let fields: Vec<&str> = std::str::from_utf8(&line[end + 1..])
            .ok()?
            .split_ascii_whitespace()
            .collect();
        // proc_pid_stat(5) numbers the state as field 3.
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        Some(Self {
            parent: i32::try_from(number(4)?).ok()?,
            session: i32::try_from(number(6)?).ok()?,
            is_zombie: fields.first() == Some(&"Z"),
            user_ticks: number(14)?,
            system_ticks: number(15)?,
            ended_children_ticks: number(16)? + number(17)?,
            threads: number(20)?,
            started: number(22)?,
            rss_pages: number(24)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_parentheses_do_no_harm() {
        let line = b"7 (a) b (c)) S 5 7 7 0 -1 0 0 0 0 0 11 22 4 5 20 0 3 0 444 1000 66 18446744073709551615\n";
        let stat = Stat {
            parent: 5,
            session: 7,
            is_zombie: false,
            user_ticks: 11,
            system_ticks: 22,
            ended_children_ticks: 9,
            threads: 3,
            started: 444,
            rss_pages: 66,
        };
        assert_eq!(Stat::parse(line), Some(stat));
        for cut in 0..line.len() - 25 {
            assert_eq!(Stat::parse(&line[..cut]), None, "{cut}");
        }
    }
}
