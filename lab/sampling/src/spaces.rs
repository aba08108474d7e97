//! The memory maps of the system's processes, kept up to date while processes start, fork, and exit.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use procfs::process::{MMPermissions, MMapPath, MemoryMap, Process};

use crate::files::{Mapped, Modules};
use crate::unwind::{Followed, Rules, Stopped, Unwinder};

/// Processes that are remembered, at most.
const MOST_PROCESSES: usize = 20_000;
/// Mappings of a process, at most.
const MOST_MAPS: usize = 20_000;

/// The place of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// The number of a file, and the address within the file.
    File(u32, u64),
    /// Code without a file, compiled by a runtime: identified by its address in the process, which is never kept.
    Compiled(i32, u64),
}

/// The memory of all processes.
#[derive(Default)]
pub(crate) struct Spaces {
    known: HashMap<i32, Space>,
    /// Processes that were forked since, and from which.
    parents: HashMap<i32, i32>,
    pub(crate) modules: Modules,
    rules: Rules,
}

/// The memory of a process.
struct Space {
    /// By start.
    maps: BTreeMap<u64, Map>,
    /// The unwinder for the current maps.
    unwinder: Option<Unwinder>,
    /// To be read again.
    stale: bool,
}

#[derive(Clone, Copy)]
struct Map {
    end: u64,
    code: Option<Code>,
}

#[derive(Clone, Copy)]
struct Code {
    module: u32,
    /// The address of the file's offset 0.
    base: u64,
}

impl Spaces {
    /// Records that a process mapped memory for execution.
    pub(crate) fn mapped(&mut self, mapped: Mapped, offset: u64) {
        let Some(space) = self.known.get_mut(&mapped.pid) else {
            return;
        };
        let code = code(&mut self.modules, &mapped, offset);
        space.put(
            mapped.start,
            Map {
                end: mapped.end,
                code,
            },
        );
    }

    pub(crate) fn forked(&mut self, pid: i32, parent: i32) {
        if pid != parent && self.parents.len() < MOST_PROCESSES {
            self.parents.insert(pid, parent);
        }
    }

    /// Drops the maps of a process that started another program (`exec`).
    pub(crate) fn replaced(&mut self, pid: i32) {
        self.parents.remove(&pid);
        let space = Space {
            maps: BTreeMap::new(),
            unwinder: None,
            stale: true,
        };
        if self.known.len() < MOST_PROCESSES {
            self.known.insert(pid, space);
        }
    }

    pub(crate) fn exited(&mut self, pid: i32) {
        self.known.remove(&pid);
        self.parents.remove(&pid);
    }

    /// Marks all maps as stale: changes may have been missed. Each is read again at its next use.
    pub(crate) fn forget(&mut self) {
        for space in self.known.values_mut() {
            space.stale = true;
        }
    }

    /// Looks up the place of an address.
    pub(crate) fn place(&mut self, pid: i32, address: u64) -> Place {
        let map = self.space(pid).and_then(|space| space.map(address));
        match map.and_then(|map| map.code) {
            Some(code) => Place::File(code.module, address.wrapping_sub(code.base)),
            None => Place::Compiled(pid, address),
        }
    }

    /// Follows the stack of a thread of a process.
    pub(crate) fn follow(&mut self, pid: i32, stopped: Stopped<'_>) -> Followed {
        if self.space(pid).is_none() {
            return (Vec::new(), false);
        }
        let Some(space) = self.known.get_mut(&pid) else {
            return (Vec::new(), false);
        };
        let unwinder = space
            .unwinder
            .get_or_insert_with(|| unwinder(&space.maps, &self.modules));
        unwinder.follow(stopped, &mut self.rules)
    }

    fn space(&mut self, pid: i32) -> Option<&Space> {
        let current = self.known.get(&pid).is_some_and(|space| !space.stale);
        if !current {
            self.read(pid);
        }
        self.known.get(&pid)
    }

    /// Reads the maps of a process; those of its parent if it has ended already.
    fn read(&mut self, pid: i32) {
        if let Some(space) = self.known.get_mut(&pid) {
            // If the process has ended, its last known maps stay in use.
            space.stale = false;
        } else if self.known.len() >= MOST_PROCESSES {
            return;
        }
        let maps = Process::new(pid).and_then(|process| process.maps());
        let maps = match maps {
            Ok(maps) => self.executable(pid, maps.into_iter()),
            Err(_) => match self
                .parents
                .get(&pid)
                .and_then(|parent| self.known.get(parent))
            {
                Some(parent) if !self.known.contains_key(&pid) => parent.maps.clone(),
                _ => return,
            },
        };
        self.known.insert(
            pid,
            Space {
                maps,
                unwinder: None,
                stale: false,
            },
        );
    }

    fn executable(
        &mut self,
        pid: i32,
        maps: impl Iterator<Item = MemoryMap>,
    ) -> BTreeMap<u64, Map> {
        let code_maps = maps.filter(|map| map.perms.contains(MMPermissions::EXECUTE));
        let found = code_maps.take(MOST_MAPS).map(|map| {
            let (start, end) = map.address;
            let path = match map.pathname {
                MMapPath::Path(path) => path,
                MMapPath::Vdso => PathBuf::from("[vdso]"),
                _ => PathBuf::new(),
            };
            let mapped = Mapped {
                pid,
                start,
                end,
                path,
                inode: map.inode,
            };
            (
                start,
                Map {
                    end,
                    code: code(&mut self.modules, &mapped, map.offset),
                },
            )
        });
        found.collect()
    }
}

impl Space {
    fn map(&self, address: u64) -> Option<Map> {
        let (_, map) = self.maps.range(..=address).next_back()?;
        (address < map.end).then_some(*map)
    }

    fn put(&mut self, start: u64, map: Map) {
        let covered = self.maps.range(start..map.end).map(|(start, _)| *start);
        let covered: Vec<u64> = covered.collect();
        for old in &covered {
            self.maps.remove(old);
        }
        if self.maps.len() < MOST_MAPS {
            self.maps.insert(start, map);
        }
        // Memory that a runtime compiles into has no tables to unwind by.
        if map.code.is_some() || !covered.is_empty() {
            self.unwinder = None;
        }
    }
}

/// Returns true if a mapping has a name and no file: runtimes keep code that they compile in such memory.
fn is_compiled(path: &Path) -> bool {
    let path = path.as_os_str().as_bytes();
    let names: [&[u8]; 4] = [b"//", b"/memfd:", b"/dev/zero", b"/SYSV"];
    names.iter().any(|name| path.starts_with(name))
}

fn code(modules: &mut Modules, mapped: &Mapped, offset: u64) -> Option<Code> {
    let module = if mapped.path == OsStr::from_bytes(b"[vdso]") {
        modules.vdso(mapped)
    } else if mapped.path.starts_with("/") && !is_compiled(&mapped.path) {
        modules.of(mapped)
    } else {
        return None;
    };
    let length = mapped.end.saturating_sub(mapped.start);
    let elf = modules.get(module).and_then(|one| one.elf.as_ref());
    let start = elf.and_then(|elf| elf.start(offset, length));
    // Without its segments the place in the file is all that is known of an address.
    let start = start.unwrap_or(offset);
    Some(Code {
        module,
        base: mapped.start.wrapping_sub(start),
    })
}

fn unwinder(maps: &BTreeMap<u64, Map>, modules: &Modules) -> Unwinder {
    let mut unwinder = Unwinder::new();
    for (start, map) in maps {
        let Some(code) = map.code else { continue };
        if let Some(elf) = modules.get(code.module).and_then(|one| one.elf.as_ref()) {
            unwinder.add(*start..map.end, code.base, elf);
        }
    }
    unwinder
}
