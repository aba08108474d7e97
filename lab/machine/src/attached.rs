//! A process that another program started. It is watched, and never stopped.

/// A process, distinguished from a later one with the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttachedProcess {
    /// Its number.
    pub pid: u32,
    /// Start time in ticks after boot.
    started: u64,
}

impl AttachedProcess {
    /// Finds a live process.
    #[must_use]
    pub fn find(pid: u32) -> Option<Self> {
        let process = procfs::process::Process::new(i32::try_from(pid).ok()?).ok()?;
        let stat = process.stat().ok()?;
        // A zombie has ended; its parent has not reaped it yet.
        (stat.state != 'Z').then_some(Self {
            pid,
            started: stat.starttime,
        })
    }

    /// Why it ended, if it has.
    #[must_use]
    pub fn ended(&self) -> Option<String> {
        let same = Self::find(self.pid) == Some(*self);
        (!same).then(|| format!("(process {}) ended", self.pid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_told_from_its_successor() {
        let me = AttachedProcess::find(std::process::id()).unwrap();
        assert_eq!(me.ended(), None);
        let other = AttachedProcess {
            started: me.started + 1,
            ..me
        };
        assert!(other.ended().is_some());
    }
}
