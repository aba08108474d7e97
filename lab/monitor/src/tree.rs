//! Which processes are below which. It reads no counters but parents.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

use crate::stat::Stat;

/// Parents of all processes, kept up to date cheaply: a look at the folder only when the machine
/// made a process or thread since the last one, and a read only for ids not seen before.
#[derive(Debug)]
pub(crate) struct ProcessTable {
    proc: PathBuf,
    /// Processes that count for themselves, also below another one.
    roots: Vec<i32>,
    parents: HashMap<i32, i32>,
    forks: Option<u64>,
}

impl ProcessTable {
    pub(crate) fn new(proc: PathBuf, roots: Vec<i32>) -> Self {
        Self {
            proc,
            roots,
            parents: HashMap::new(),
            forks: None,
        }
    }

    pub(crate) fn proc(&self) -> &std::path::Path {
        &self.proc
    }

    /// Takes in new processes. `forks` is the machine's count of them; unknown means always look.
    pub(crate) fn refresh(&mut self, forks: Option<u64>) {
        if forks.is_some() && forks == self.forks {
            return;
        }
        self.forks = forks;
        let Ok(entries) = fs::read_dir(&self.proc) else {
            return;
        };
        let mut parents = HashMap::with_capacity(self.parents.len());
        for entry in entries.flatten() {
            let Some(pid) = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok())
            else {
                continue;
            };
            let known = self.parents.get(&pid).copied();
            let parent = known.or_else(|| Stat::read(&self.proc, pid).map(|stat| stat.parent));
            parents.extend(parent.map(|parent| (pid, parent)));
        }
        self.parents = parents;
    }

    /// The process and its descendants, without those that count for themselves.
    pub(crate) fn tree(&self, root: i32) -> Vec<i32> {
        let mut tree = vec![root];
        let mut next = 0;
        while let Some(parent) = tree.get(next).copied() {
            next += 1;
            let children = self.parents.iter().filter(|(pid, p)| {
                **p == parent && !self.roots.contains(pid) && !tree.contains(pid)
            });
            let children: Vec<i32> = children.map(|(pid, _)| *pid).collect();
            tree.extend(children);
        }
        tree
    }
}
