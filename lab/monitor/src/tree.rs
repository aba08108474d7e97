//! The tree of processes. It reads no counters, only parents.

use std::collections::HashMap;
use std::fs;

use crate::hold::Hold;
use crate::roots::Roots;
use crate::stat::Stat;

/// Parents of all processes, updated cheaply: the folder is read only when the machine
/// created a process or thread since the last update, and a process only if its id is new.
#[derive(Debug)]
pub(crate) struct ProcessTable {
    files: Roots,
    roots: Vec<Root>,
    parents: HashMap<i32, i32>,
    forks: Option<u64>,
}

/// A process with counters of its own, also below another one, with a selector of further processes.
#[derive(Debug)]
struct Root {
    pid: i32,
    hold: Option<Hold>,
    /// The processes at the last look.
    held: Vec<i32>,
}

impl Root {
    fn is(&self, pid: i32) -> bool {
        self.pid == pid || self.held.contains(&pid)
    }
}

impl ProcessTable {
    pub(crate) fn new(files: Roots, roots: Vec<(i32, Option<Hold>)>) -> Self {
        let roots = roots.into_iter().map(|(pid, hold)| Root {
            pid,
            hold,
            held: Vec::new(),
        });
        Self {
            files,
            roots: roots.collect(),
            parents: HashMap::new(),
            forks: None,
        }
    }

    pub(crate) fn proc(&self) -> &std::path::Path {
        &self.files.proc
    }

    /// Adds new processes. `forks` is the machine's count of them; if unknown, the folder is always read.
    pub(crate) fn refresh(&mut self, forks: Option<u64>) {
        if forks.is_some() && forks == self.forks {
            return;
        }
        self.forks = forks;
        for root in &mut self.roots {
            if let Some(hold) = &root.hold {
                root.held = hold.members(&self.files);
            }
        }
        let Ok(entries) = fs::read_dir(&self.files.proc) else {
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
            let parent =
                known.or_else(|| Stat::read(&self.files.proc, pid).map(|stat| stat.parent));
            parents.extend(parent.map(|parent| (pid, parent)));
        }
        self.parents = parents;
    }

    /// A root's process, the processes that its hold selects, and all descendants, without other
    /// roots.
    pub(crate) fn tree(&self, root: usize) -> Vec<i32> {
        let own = &self.roots[root];
        let mut tree = vec![own.pid];
        tree.extend(own.held.iter().filter(|pid| **pid != own.pid));
        let counts_itself = |pid: &i32| self.roots.iter().any(|root| root.is(*pid));
        let mut next = 0;
        while let Some(parent) = tree.get(next).copied() {
            next += 1;
            let children = self
                .parents
                .iter()
                .filter(|(pid, p)| **p == parent && !counts_itself(pid) && !tree.contains(pid));
            let children: Vec<i32> = children.map(|(pid, _)| *pid).collect();
            tree.extend(children);
        }
        tree
    }

    /// Returns true if any process can be counted: the root's own process, or any of a hold.
    pub(crate) fn lives(&self, root: usize, found: &[(i32, Stat)]) -> bool {
        let root = &self.roots[root];
        match root.hold {
            Some(_) => !found.is_empty(),
            None => found.iter().any(|(pid, _)| *pid == root.pid),
        }
    }
}
