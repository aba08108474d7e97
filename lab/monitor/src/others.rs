//! CPU of all programs of the machine by name, between two looks. It knows no columns.

use std::collections::HashMap;
use std::fs;
use std::time::Duration;

use crate::roots::Roots;
use crate::stat::Stat;

/// The process that orphans go to.
const FIRST: i32 = 1;

/// The CPU use of a program between two looks.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    /// Its name, at most 15 characters, as the kernel cuts it.
    pub name: String,
    /// 100 = one core; all processes of the name together.
    pub cpu_percent: f64,
}

/// All processes of the machine at one moment.
#[derive(Debug, Clone, Default)]
pub struct Programs {
    processes: HashMap<i32, Seen>,
}

#[derive(Debug, Clone)]
struct Seen {
    name: String,
    stat: Stat,
}

impl Programs {
    /// Looks at all processes; some ten microseconds for each.
    #[must_use]
    pub fn look(roots: &Roots) -> Self {
        let mut processes = HashMap::new();
        for entry in fs::read_dir(&roots.proc).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            let Ok(line) = fs::read(entry.path().join("stat")) else {
                continue;
            };
            if let Some((name, stat)) = name_of(&line).zip(Stat::parse(&line)) {
                processes.insert(pid, Seen { name, stat });
            }
        }
        Self { processes }
    }

    /// The programs with the most CPU since `earlier`, without the processes `except` and their
    /// descendants; programs under half a percent are skipped. A process that began and ended in
    /// between counts for the process that waited for it, such as a compiler for its build tool.
    #[must_use]
    pub fn busiest(
        &self,
        earlier: &Self,
        passed: Duration,
        except: &[u32],
        most: usize,
    ) -> Vec<Program> {
        let mut ticks: HashMap<&str, u64> = HashMap::new();
        for (pid, now) in &self.processes {
            if !self.is_below(*pid, except) {
                *ticks.entry(&now.name).or_default() += self.growth(*pid, now, earlier);
            }
        }
        let all = passed.as_secs_f64() * procfs::ticks_per_second() as f64;
        let mut programs: Vec<Program> = ticks
            .into_iter()
            .map(|(name, ticks)| Program {
                name: name.to_owned(),
                cpu_percent: 100.0 * ticks as f64 / all,
            })
            .filter(|program| program.cpu_percent.is_finite() && program.cpu_percent >= 0.5)
            .collect();
        programs.sort_by(|a, b| {
            let by_cpu = b.cpu_percent.total_cmp(&a.cpu_percent);
            by_cpu.then_with(|| a.name.cmp(&b.name))
        });
        programs.truncate(most);
        programs
    }

    /// Ticks of a process and of children that ended, since `earlier`.
    fn growth(&self, pid: i32, now: &Seen, earlier: &Self) -> u64 {
        let same = |seen: &&Seen| seen.stat.started == now.stat.started;
        let before = earlier.processes.get(&pid).filter(same);
        let (own, ended) = before.map_or((0, 0), |seen| {
            (seen.stat.ticks(), seen.stat.ended_children_ticks)
        });
        // CPU that a child used before it was seen to be gone was not used since.
        let known: u64 = earlier
            .processes
            .iter()
            .filter(|(child, _)| !self.processes.contains_key(child))
            .filter(|(_, seen)| self.may_have_waited(pid, seen, earlier))
            .map(|(_, seen)| seen.stat.ticks() + seen.stat.ended_children_ticks)
            .sum();
        let ended = now.stat.ended_children_ticks.saturating_sub(ended);
        now.stat.ticks().saturating_sub(own) + ended.saturating_sub(known)
    }

    /// Returns true if `pid` may have waited for an ended process: its parent; or, if that has ended, too,
    /// the next living ancestor, or the first process, which adopts orphans.
    fn may_have_waited(&self, pid: i32, gone: &Seen, earlier: &Self) -> bool {
        let mut above = gone.stat.parent;
        if above == pid {
            return true;
        }
        if self.processes.contains_key(&above) {
            return false;
        }
        // Bounded as in `is_below`.
        for _ in 0..1000 {
            if above == pid || self.processes.contains_key(&above) {
                break;
            }
            match earlier.processes.get(&above) {
                Some(seen) => above = seen.stat.parent,
                None => break,
            }
        }
        above == pid || pid == FIRST
    }

    fn is_below(&self, pid: i32, roots: &[u32]) -> bool {
        let mut pid = pid;
        // The kernel's chain of parents ends at 0; a bound, for a table read while it changed.
        for _ in 0..1000 {
            if u32::try_from(pid).is_ok_and(|pid| roots.contains(&pid)) {
                return true;
            }
            match self.processes.get(&pid) {
                Some(seen) => pid = seen.stat.parent,
                None => return false,
            }
        }
        false
    }
}

/// The text in the parentheses of a `stat` line, which may itself contain parentheses.
fn name_of(line: &[u8]) -> Option<String> {
    let start = line.iter().position(|b| *b == b'(')? + 1;
    let end = line.iter().rposition(|b| *b == b')')?;
    Some(String::from_utf8_lossy(line.get(start..end)?).into_owned())
}
