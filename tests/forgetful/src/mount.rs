//! The disk as a file system that a process mounts: the kernel's calls, one at a time.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{
    BackgroundSession, BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem,
    FopenFlags, Generation, INodeNo, LockOwner, MountOption, OpenFlags, RenameFlags, ReplyAttr,
    ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs,
    ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::disk::{Disk, Kind};
use crate::image::Image;
use crate::rules::Rules;

/// The kernel may cache nothing: any answer may have changed by the next call.
const NO_TIME: Duration = Duration::ZERO;
const BLOCK_BYTES: u32 = 4096;
const FREE_BLOCKS: u64 = 1 << 24;
const KEEP_SIZE: i32 = 1;

type Moment = Box<dyn FnMut(&mut Crashing<'_>) + Send>;

struct Inner {
    disk: Disk,
    rng: Xoshiro256PlusPlus,
    calls: u64,
    moment: Option<Moment>,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inner")
            .field("calls", &self.calls)
            .finish_non_exhaustive()
    }
}

/// A moment between two calls.
#[derive(Debug)]
pub(crate) struct Crashing<'a> {
    disk: &'a Disk,
    rng: &'a mut Xoshiro256PlusPlus,
    /// The number of calls so far.
    pub(crate) calls: u64,
}

impl Crashing<'_> {
    /// Returns the image of a crash at this moment.
    pub(crate) fn image(&mut self) -> Image {
        Image::of(self.disk, self.rng)
    }
}

/// The disk, mounted; unmounted when it is dropped.
#[derive(Debug)]
pub(crate) struct Serving {
    inner: Arc<Mutex<Inner>>,
    session: Option<BackgroundSession>,
}

impl Serving {
    /// Mounts an empty disk at a folder.
    pub(crate) fn start(folder: &Path, seed: u64) -> io::Result<Self> {
        let inner = Arc::new(Mutex::new(Inner {
            disk: Disk::new(),
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
            calls: 0,
            moment: None,
        }));
        let mut config = Config::default();
        config.mount_options = vec![
            MountOption::FSName("forgetful".to_owned()),
            MountOption::NoAtime,
        ];
        let session = fuser::spawn_mount(Calls(inner.clone()), folder, &config)?;
        Ok(Self {
            inner,
            session: Some(session),
        })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("no call panics")
    }

    /// Returns the image of a crash at this moment.
    pub(crate) fn crash(&self) -> Image {
        let inner = &mut *self.inner();
        Image::of(&inner.disk, &mut inner.rng)
    }

    /// Calls `moment` between any two calls from now on; no call continues before it returns.
    pub(crate) fn at_calls(&self, moment: impl FnMut(&mut Crashing<'_>) + Send + 'static) {
        self.inner().moment = Some(Box::new(moment));
    }

    pub(crate) fn rules(&self, change: impl FnOnce(&mut Rules)) {
        change(&mut self.inner().disk.rules);
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        if let Some(session) = self.session.take()
            && let Err(error) = session.umount_and_join()
        {
            eprintln!("unmounting: {error}");
        }
    }
}

#[derive(Debug)]
struct Calls(Arc<Mutex<Inner>>);

type Outcome<T> = Result<T, nix::errno::Errno>;

fn errno(error: nix::errno::Errno) -> Errno {
    Errno::from_i32(error as i32)
}

fn text(name: &OsStr) -> Outcome<&str> {
    name.to_str().ok_or(nix::errno::Errno::EILSEQ)
}

fn empty(reply: ReplyEmpty, outcome: Outcome<()>) {
    match outcome {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(errno(error)),
    }
}

fn attributes(disk: &Disk, id: u64) -> Outcome<FileAttr> {
    let node = disk.node(id)?;
    let (kind, size) = match &node.kind {
        Kind::File(bytes) => (FileType::RegularFile, bytes.now.len() as u64),
        Kind::Folder { .. } => (FileType::Directory, u64::from(BLOCK_BYTES)),
    };
    // The disk keeps no times: its tests never look at them.
    Ok(FileAttr {
        ino: INodeNo(id),
        size,
        blocks: size.div_ceil(512),
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind,
        perm: (node.mode & 0o7777) as u16,
        nlink: node.links.max(1),
        uid: nix::unistd::getuid().as_raw(),
        gid: nix::unistd::getgid().as_raw(),
        rdev: 0,
        blksize: BLOCK_BYTES,
        flags: 0,
    })
}

impl Calls {
    fn look<T>(&self, with: impl FnOnce(&Disk) -> T) -> T {
        with(&self.0.lock().expect("no call panics").disk)
    }

    /// Runs a call that changes something; the power may fail just before it.
    fn change<T>(&self, with: impl FnOnce(&mut Disk) -> Outcome<T>) -> Outcome<T> {
        let inner = &mut *self.0.lock().expect("no call panics");
        inner.calls += 1;
        if let Some(moment) = &mut inner.moment {
            moment(&mut Crashing {
                disk: &inner.disk,
                rng: &mut inner.rng,
                calls: inner.calls,
            });
        }
        with(&mut inner.disk)
    }

    fn entry(&self, reply: ReplyEntry, made: Outcome<u64>) {
        match made.and_then(|id| self.look(|disk| attributes(disk, id))) {
            Ok(attributes) => reply.entry(&NO_TIME, &attributes, Generation(0)),
            Err(error) => reply.error(errno(error)),
        }
    }
}

impl Filesystem for Calls {
    fn lookup(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = text(name).and_then(|name| self.look(|disk| disk.find(parent.0, name)));
        self.entry(reply, found);
    }

    fn getattr(&self, _req: &Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        match self.look(|disk| attributes(disk, ino.0)) {
            Ok(attributes) => reply.attr(&NO_TIME, &attributes),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn setattr(
        &self,
        req: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let changed = self.change(|disk| {
            if let Some(length) = size {
                disk.set_length(ino.0, length)?;
            }
            mode.map_or(Ok(()), |mode| disk.set_mode(ino.0, mode))
        });
        match changed {
            Ok(()) => self.getattr(req, ino, fh, reply),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn mkdir(
        &self,
        _req: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        reply: ReplyEntry,
    ) {
        let made = text(name)
            .and_then(|name| self.change(|disk| disk.make(parent.0, name, mode & !umask, true)));
        self.entry(reply, made);
    }

    fn unlink(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let gone =
            text(name).and_then(|name| self.change(|disk| disk.remove(parent.0, name, false)));
        empty(reply, gone);
    }

    fn rmdir(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let gone =
            text(name).and_then(|name| self.change(|disk| disk.remove(parent.0, name, true)));
        empty(reply, gone);
    }

    fn rename(
        &self,
        _req: &Request,
        parent: INodeNo,
        name: &OsStr,
        newparent: INodeNo,
        newname: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let replaces = !flags.contains(RenameFlags::RENAME_NOREPLACE);
        let renamed = text(name).and_then(|name| {
            let new = text(newname)?;
            self.change(|disk| disk.rename((parent.0, name), (newparent.0, new), replaces))
        });
        empty(reply, renamed);
    }

    fn link(
        &self,
        _req: &Request,
        ino: INodeNo,
        newparent: INodeNo,
        newname: &OsStr,
        reply: ReplyEntry,
    ) {
        let linked = text(newname)
            .and_then(|name| self.change(|disk| disk.link(ino.0, newparent.0, name)))
            .map(|()| ino.0);
        self.entry(reply, linked);
    }

    fn create(
        &self,
        _req: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        let made = text(name).and_then(|name| {
            self.change(|disk| {
                let id = disk.make(parent.0, name, mode & !umask, false)?;
                disk.opened(id);
                attributes(disk, id)
            })
        });
        match made {
            Ok(attributes) => reply.created(
                &NO_TIME,
                &attributes,
                Generation(0),
                FileHandle(0),
                FopenFlags::empty(),
            ),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn open(&self, _req: &Request, ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        let mut inner = self.0.lock().expect("no call panics");
        inner.disk.opened(ino.0);
        drop(inner);
        reply.opened(FileHandle(0), FopenFlags::empty());
    }

    fn release(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        let mut inner = self.0.lock().expect("no call panics");
        inner.disk.closed(ino.0);
        drop(inner);
        reply.ok();
    }

    fn flush(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        _lock_owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        reply.ok();
    }

    fn read(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let bytes = self.look(|disk| match &disk.node(ino.0)?.kind {
            Kind::File(bytes) => {
                let end = bytes.now.len();
                let from = end.min(offset as usize);
                Ok(bytes.now[from..end.min(from + size as usize)].to_vec())
            }
            Kind::Folder { .. } => Err(nix::errno::Errno::EISDIR),
        });
        match bytes {
            Ok(bytes) => reply.data(&bytes),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn write(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.change(|disk| disk.write(ino.0, offset, data)) {
            Ok(()) => reply.written(data.len() as u32),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn fallocate(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        if mode & !KEEP_SIZE != 0 {
            reply.error(Errno::ENOTSUP);
            return;
        }
        let grows = mode & KEEP_SIZE == 0;
        let done = self.change(|disk| disk.allocate(ino.0, offset + length, grows));
        empty(reply, done);
    }

    fn fsync(&self, _req: &Request, ino: INodeNo, _fh: FileHandle, _data: bool, reply: ReplyEmpty) {
        let synced = self.change(|disk| disk.sync(ino.0));
        empty(reply, synced);
    }

    fn fsyncdir(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        _data: bool,
        reply: ReplyEmpty,
    ) {
        let synced = self.change(|disk| disk.sync_folder(ino.0));
        empty(reply, synced);
    }

    fn readdir(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let names: Outcome<Vec<(String, u64, FileType)>> = self.look(|disk| {
            let names = disk.names(ino.0)?.iter();
            names
                .map(|(name, id)| {
                    attributes(disk, *id).map(|found| (name.clone(), *id, found.kind))
                })
                .collect()
        });
        let names = match names {
            Ok(names) => names,
            Err(error) => return reply.error(errno(error)),
        };
        let dots = [".", ".."].map(|dot| (dot.to_owned(), ino.0, FileType::Directory));
        let all = dots.into_iter().chain(names).enumerate();
        for (at, (name, id, kind)) in all.skip(offset as usize) {
            if reply.add(INodeNo(id), at as u64 + 1, kind, &name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _req: &Request, _ino: INodeNo, reply: ReplyStatfs) {
        let (free, files) = (FREE_BLOCKS, 1 << 20);
        reply.statfs(
            free,
            free,
            free,
            files,
            files,
            BLOCK_BYTES,
            255,
            BLOCK_BYTES,
        );
    }
}
