//! The disk itself: what programs see now, and what is durable. It doesn't depend on the kernel interface.
//!
//! A sync of a file makes its bytes durable; a sync of a folder makes the names in it durable. Neither does the other,
//! as in POSIX (most file systems are kinder). A rename within one transaction is atomic: after a crash the file has
//! the old name or the new.

use std::collections::{BTreeMap, BTreeSet};

use nix::errno::Errno;

use crate::rules::{Call, Rules};

pub(crate) const ROOT: u64 = 1;

type Answer<T> = Result<T, Errno>;

/// A change of a file that is not yet durable.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    Bytes(u64, Vec<u8>),
    Length(u64),
}

#[derive(Debug, Default)]
pub(crate) struct Bytes {
    pub(crate) now: Vec<u8>,
    pub(crate) durable: Vec<u8>,
    pub(crate) pending: Vec<Change>,
}

pub(crate) type Names = BTreeMap<String, u64>;

#[derive(Debug)]
pub(crate) enum Kind {
    File(Bytes),
    Folder { now: Names, durable: Names },
}

#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    pub(crate) mode: u32,
    pub(crate) links: u32,
}

/// A change of names that is not yet durable; it is atomic.
#[derive(Debug, Clone)]
pub(crate) struct Renaming {
    /// The name that is removed: folder, name.
    pub(crate) gone: Option<(u64, String)>,
    /// The name that is added: folder, name, inode.
    pub(crate) come: Option<(u64, String, u64)>,
}

impl Renaming {
    fn touches(&self, folder: u64) -> bool {
        self.gone.as_ref().is_some_and(|(at, _)| *at == folder)
            || self.come.as_ref().is_some_and(|(at, _, _)| *at == folder)
    }
}

#[derive(Debug)]
pub(crate) struct Disk {
    pub(crate) nodes: BTreeMap<u64, Node>,
    /// Changes of names that are not durable, in order.
    pub(crate) pending: Vec<Renaming>,
    pub(crate) rules: Rules,
    next: u64,
    open: BTreeMap<u64, u32>,
}

/// Writes bytes at an offset; a gap before the offset is filled with zeros.
pub(crate) fn write_at(into: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let end = offset + bytes.len();
    if into.len() < end {
        into.resize(end, 0);
    }
    into[offset..end].copy_from_slice(bytes);
}

pub(crate) fn apply(into: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Bytes(offset, bytes) => write_at(into, *offset as usize, bytes),
        Change::Length(length) => into.resize(*length as usize, 0),
    }
}

impl Disk {
    pub(crate) fn new() -> Self {
        let folder = Kind::Folder {
            now: Names::new(),
            durable: Names::new(),
        };
        let mut disk = Self {
            nodes: BTreeMap::new(),
            pending: Vec::new(),
            rules: Rules::default(),
            next: ROOT,
            open: BTreeMap::new(),
        };
        disk.add(folder, 0o755);
        disk
    }

    fn add(&mut self, kind: Kind, mode: u32) -> u64 {
        let id = self.next;
        self.next += 1;
        let node = Node {
            kind,
            mode,
            links: 0,
        };
        self.nodes.insert(id, node);
        id
    }

    pub(crate) fn node(&self, id: u64) -> Answer<&Node> {
        self.nodes.get(&id).ok_or(Errno::ENOENT)
    }

    fn file(&mut self, id: u64) -> Answer<&mut Bytes> {
        let node = self.nodes.get_mut(&id).ok_or(Errno::ENOENT)?;
        match &mut node.kind {
            Kind::File(bytes) => Ok(bytes),
            Kind::Folder { .. } => Err(Errno::EISDIR),
        }
    }

    pub(crate) fn names(&self, folder: u64) -> Answer<&Names> {
        match &self.node(folder)?.kind {
            Kind::Folder { now, .. } => Ok(now),
            Kind::File(_) => Err(Errno::ENOTDIR),
        }
    }

    fn names_mut(&mut self, folder: u64) -> Answer<&mut Names> {
        let node = self.nodes.get_mut(&folder).ok_or(Errno::ENOENT)?;
        match &mut node.kind {
            Kind::Folder { now, .. } => Ok(now),
            Kind::File(_) => Err(Errno::ENOTDIR),
        }
    }

    pub(crate) fn find(&self, folder: u64, name: &str) -> Answer<u64> {
        self.names(folder)?.get(name).copied().ok_or(Errno::ENOENT)
    }

    fn fails(&mut self, call: Call) -> Answer<()> {
        self.rules.failure(call).map_or(Ok(()), Err)
    }

    /// Creates a file or a folder.
    pub(crate) fn make(
        &mut self,
        folder: u64,
        name: &str,
        mode: u32,
        is_folder: bool,
    ) -> Answer<u64> {
        if self.names(folder)?.contains_key(name) {
            return Err(Errno::EEXIST);
        }
        self.fails(Call::Names)?;
        let kind = if is_folder {
            Kind::Folder {
                now: Names::new(),
                durable: Names::new(),
            }
        } else {
            Kind::File(Bytes::default())
        };
        let id = self.add(kind, mode);
        self.put_name(folder, name, id)?;
        self.pending.push(Renaming {
            gone: None,
            come: Some((folder, name.to_owned(), id)),
        });
        Ok(id)
    }

    pub(crate) fn link(&mut self, id: u64, folder: u64, name: &str) -> Answer<()> {
        if self.names(folder)?.contains_key(name) {
            return Err(Errno::EEXIST);
        }
        self.fails(Call::Names)?;
        self.put_name(folder, name, id)?;
        self.pending.push(Renaming {
            gone: None,
            come: Some((folder, name.to_owned(), id)),
        });
        Ok(())
    }

    pub(crate) fn remove(&mut self, folder: u64, name: &str, is_folder: bool) -> Answer<()> {
        let id = self.find(folder, name)?;
        match &self.node(id)?.kind {
            Kind::Folder { .. } if !is_folder => return Err(Errno::EISDIR),
            Kind::Folder { now, .. } if !now.is_empty() => return Err(Errno::ENOTEMPTY),
            Kind::File(_) if is_folder => return Err(Errno::ENOTDIR),
            _ => {}
        }
        self.fails(Call::Names)?;
        self.take_name(folder, name)?;
        self.pending.push(Renaming {
            gone: Some((folder, name.to_owned())),
            come: None,
        });
        Ok(())
    }

    pub(crate) fn rename(
        &mut self,
        (folder, name): (u64, &str),
        (to, new): (u64, &str),
        replaces: bool,
    ) -> Answer<()> {
        let id = self.find(folder, name)?;
        if let Ok(there) = self.find(to, new) {
            if !replaces {
                return Err(Errno::EEXIST);
            }
            if there == id {
                return Ok(());
            }
            if matches!(&self.node(there)?.kind, Kind::Folder { now, .. } if !now.is_empty()) {
                return Err(Errno::ENOTEMPTY);
            }
        }
        self.fails(Call::Names)?;
        let _ = self.take_name(to, new);
        self.take_name(folder, name)?;
        self.put_name(to, new, id)?;
        self.pending.push(Renaming {
            gone: Some((folder, name.to_owned())),
            come: Some((to, new.to_owned(), id)),
        });
        Ok(())
    }

    fn put_name(&mut self, folder: u64, name: &str, id: u64) -> Answer<()> {
        self.names_mut(folder)?.insert(name.to_owned(), id);
        if let Some(node) = self.nodes.get_mut(&id) {
            node.links += 1;
        }
        Ok(())
    }

    fn take_name(&mut self, folder: u64, name: &str) -> Answer<()> {
        let id = self.names_mut(folder)?.remove(name).ok_or(Errno::ENOENT)?;
        if let Some(node) = self.nodes.get_mut(&id) {
            node.links = node.links.saturating_sub(1);
        }
        Ok(())
    }

    pub(crate) fn write(&mut self, id: u64, offset: u64, bytes: &[u8]) -> Answer<()> {
        self.fails(Call::Write)?;
        let file = self.file(id)?;
        write_at(&mut file.now, offset as usize, bytes);
        file.pending.push(Change::Bytes(offset, bytes.to_vec()));
        Ok(())
    }

    /// Reserves space for bytes; the file grows to it if `grows`.
    pub(crate) fn allocate(&mut self, id: u64, end: u64, grows: bool) -> Answer<()> {
        self.fails(Call::Write)?;
        let file = self.file(id)?;
        if grows && file.now.len() < end as usize {
            file.now.resize(end as usize, 0);
            file.pending.push(Change::Length(end));
        }
        Ok(())
    }

    pub(crate) fn set_length(&mut self, id: u64, length: u64) -> Answer<()> {
        self.fails(Call::Write)?;
        let file = self.file(id)?;
        file.now.resize(length as usize, 0);
        file.pending.push(Change::Length(length));
        Ok(())
    }

    pub(crate) fn set_mode(&mut self, id: u64, mode: u32) -> Answer<()> {
        self.nodes.get_mut(&id).ok_or(Errno::ENOENT)?.mode = mode & 0o7777;
        Ok(())
    }

    pub(crate) fn sync(&mut self, id: u64) -> Answer<()> {
        let failed = self.rules.failure(Call::Sync);
        let lies = !self.rules.lies.is_empty()
            && self
                .path_of(id)
                .is_some_and(|path| self.rules.lies_about_file(&path));
        if lies && failed.is_none() {
            return Ok(());
        }
        let file = self.file(id)?;
        let pending = std::mem::take(&mut file.pending);
        if let Some(errno) = failed {
            // As on Linux: the pages are clean after a failure, and a later sync doesn't write them.
            return Err(errno);
        }
        for change in &pending {
            apply(&mut file.durable, change);
        }
        Ok(())
    }

    pub(crate) fn sync_folder(&mut self, folder: u64) -> Answer<()> {
        self.fails(Call::SyncFolder)?;
        let lies = !self.rules.lies.is_empty()
            && self
                .path_of(folder)
                .is_some_and(|path| self.rules.lies_about_folder(&path));
        if lies {
            return Ok(());
        }
        let pending = std::mem::take(&mut self.pending);
        let (settled, rest): (Vec<_>, Vec<_>) = pending
            .into_iter()
            .partition(|change| change.touches(folder));
        self.pending = rest;
        for change in settled {
            settle(&mut self.nodes, &change);
        }
        Ok(())
    }

    pub(crate) fn opened(&mut self, id: u64) {
        *self.open.entry(id).or_default() += 1;
    }

    /// A file that is not open and has no name is deleted. A crash may bring back a durable name, so the bytes stay
    /// until no durable name is left.
    pub(crate) fn closed(&mut self, id: u64) {
        if let Some(count) = self.open.get_mut(&id) {
            *count -= 1;
            if *count == 0 {
                self.open.remove(&id);
            }
        }
        if self.nodes.len() > 4096 {
            self.collect();
        }
    }

    fn collect(&mut self) {
        let mut held: BTreeSet<u64> = self.open.keys().copied().collect();
        held.insert(ROOT);
        for node in self.nodes.values() {
            if let Kind::Folder { now, durable } = &node.kind {
                held.extend(now.values().chain(durable.values()));
            }
        }
        held.extend(
            self.pending
                .iter()
                .filter_map(|change| change.come.as_ref().map(|(_, _, id)| *id)),
        );
        self.nodes.retain(|id, _| held.contains(id));
    }

    /// Returns a path of the node, for rules that name one.
    fn path_of(&self, id: u64) -> Option<String> {
        if id == ROOT {
            return Some("/".to_owned());
        }
        self.nodes.iter().find_map(|(folder, node)| {
            let Kind::Folder { now, .. } = &node.kind else {
                return None;
            };
            let (name, _) = now.iter().find(|(_, node)| **node == id)?;
            let above = self.path_of(*folder)?;
            Some(format!("{}/{name}", above.trim_end_matches('/')))
        })
    }
}

/// Makes a change of names durable.
pub(crate) fn settle(nodes: &mut BTreeMap<u64, Node>, change: &Renaming) {
    let mut durable = |folder: &u64, with: &mut dyn FnMut(&mut Names)| {
        if let Some(Node {
            kind: Kind::Folder { durable, .. },
            ..
        }) = nodes.get_mut(folder)
        {
            with(durable);
        }
    };
    if let Some((folder, name)) = &change.gone {
        durable(folder, &mut |names| {
            names.remove(name);
        });
    }
    if let Some((folder, name, id)) = &change.come {
        durable(folder, &mut |names| {
            names.insert(name.clone(), *id);
        });
    }
}
