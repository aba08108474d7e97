//! The image after a crash: everything durable, and of the rest what the seed selects.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::disk::{Change, Disk, Kind, Names, ROOT, apply};

/// The kernel's unit of writing.
const PAGE_BYTES: usize = 4096;
/// The disk's unit of writing.
const SECTOR_BYTES: usize = 512;

/// A disk after a crash.
#[derive(Debug)]
pub(crate) struct Image {
    folders: BTreeMap<u64, (u32, Names)>,
    files: BTreeMap<u64, (u32, Vec<u8>)>,
}

/// The fate of changes that were not synced.
#[derive(Debug, Clone, Copy)]
enum Fate {
    /// None of them is durable.
    Nothing,
    /// All are durable.
    All,
    /// The first ones are durable.
    First,
    /// A random subset, in whole pages.
    Pages,
    /// A random subset, in sectors: pages are torn.
    Sectors,
    /// Files have their lengths, but zeros for bytes.
    Lengths,
}

fn fate(rng: &mut Xoshiro256PlusPlus) -> Fate {
    match rng.next_u32() % 10 {
        0..=2 => Fate::Nothing,
        3 => Fate::All,
        4..=5 => Fate::First,
        6..=7 => Fate::Pages,
        8 => Fate::Sectors,
        _ => Fate::Lengths,
    }
}

fn one_in_two(rng: &mut Xoshiro256PlusPlus) -> bool {
    rng.next_u32() & 1 == 0
}

/// Returns a number below a bound that is at most 2³².
fn below(rng: &mut Xoshiro256PlusPlus, bound: usize) -> usize {
    (rng.next_u64() % bound.max(1) as u64) as usize
}

/// Writes the random pieces of a write that reach the disk.
fn in_part(into: &mut Vec<u8>, change: &Change, unit: usize, rng: &mut Xoshiro256PlusPlus) {
    let Change::Bytes(offset, bytes) = change else {
        if one_in_two(rng) {
            apply(into, change);
        }
        return;
    };
    let (mut at, mut rest) = (*offset as usize, bytes.as_slice());
    while !rest.is_empty() {
        let piece = rest.len().min(unit - at % unit);
        let (first, others) = rest.split_at(piece);
        if one_in_two(rng) {
            apply(into, &Change::Bytes(at as u64, first.to_vec()));
        }
        (at, rest) = (at + piece, others);
    }
}

fn file_after(durable: &[u8], pending: &[Change], rng: &mut Xoshiro256PlusPlus) -> Vec<u8> {
    let mut bytes = durable.to_vec();
    if pending.is_empty() {
        return bytes;
    }
    match fate(rng) {
        Fate::Nothing => {}
        Fate::All => pending.iter().for_each(|change| apply(&mut bytes, change)),
        Fate::First => {
            let first = below(rng, pending.len() + 1);
            for change in &pending[..first] {
                apply(&mut bytes, change);
            }
        }
        Fate::Pages => {
            for change in pending {
                in_part(&mut bytes, change, PAGE_BYTES, rng);
            }
        }
        Fate::Sectors => {
            for change in pending {
                in_part(&mut bytes, change, SECTOR_BYTES, rng);
            }
        }
        Fate::Lengths => {
            for change in pending {
                let end = match change {
                    Change::Bytes(offset, written) => *offset as usize + written.len(),
                    Change::Length(length) => *length as usize,
                };
                if bytes.len() < end {
                    bytes.resize(end, 0);
                }
            }
        }
    }
    bytes
}

impl Image {
    pub(crate) fn of(disk: &Disk, rng: &mut Xoshiro256PlusPlus) -> Self {
        let mut folders = BTreeMap::new();
        let mut files = BTreeMap::new();
        for (id, node) in &disk.nodes {
            match &node.kind {
                Kind::Folder { durable, .. } => {
                    folders.insert(*id, (node.mode, durable.clone()));
                }
                Kind::File(bytes) => {
                    let after = file_after(&bytes.durable, &bytes.pending, rng);
                    files.insert(*id, (node.mode, after));
                }
            }
        }
        let mut image = Self { folders, files };
        image.keep_names(disk, rng);
        image
    }

    fn keep_names(&mut self, disk: &Disk, rng: &mut Xoshiro256PlusPlus) {
        let fate = fate(rng);
        let first = below(rng, disk.pending.len() + 1);
        for (number, change) in disk.pending.iter().enumerate() {
            let happens = match fate {
                Fate::Nothing => false,
                Fate::All => true,
                Fate::First => number < first,
                Fate::Pages | Fate::Sectors | Fate::Lengths => one_in_two(rng),
            };
            if !happens {
                continue;
            }
            if let Some((folder, name)) = &change.gone
                && let Some((_, names)) = self.folders.get_mut(folder)
            {
                names.remove(name);
            }
            if let Some((folder, name, id)) = &change.come
                && let Some((_, names)) = self.folders.get_mut(folder)
            {
                names.insert(name.clone(), *id);
            }
        }
    }

    /// Writes the image into a folder, where a program starts again with it.
    pub(crate) fn write_to(&self, folder: &Path) -> io::Result<()> {
        let mut seen = BTreeMap::new();
        self.write_folder(ROOT, folder, &mut seen)
    }

    fn write_folder(
        &self,
        id: u64,
        path: &Path,
        seen: &mut BTreeMap<u64, std::path::PathBuf>,
    ) -> io::Result<()> {
        let Some((mode, names)) = self.folders.get(&id) else {
            return Ok(());
        };
        fs::create_dir_all(path)?;
        for (name, id) in names {
            let path = path.join(name);
            if self.folders.contains_key(id) {
                self.write_folder(*id, &path, seen)?;
            } else if let Some(first) = seen.get(id) {
                fs::hard_link(first, &path)?;
            } else if let Some((mode, bytes)) = self.files.get(id) {
                fs::write(&path, bytes)?;
                fs::set_permissions(&path, fs::Permissions::from_mode(*mode))?;
                seen.insert(*id, path);
            }
        }
        fs::set_permissions(path, fs::Permissions::from_mode(*mode))
    }
}
