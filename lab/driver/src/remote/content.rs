//! Transfers the content of a workload's files to a generator: those that requests carry, then the rows. Sent in frames
//! after the first message, so that no message grows with it.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;

use lab_workload::{Data, MAX_ATTACHED_BYTES, Table, Workload};

use super::channel::{FrameSink, FrameSource};
use super::error::MessageError;
use crate::mix::Mix;

/// The size of a frame in bytes.
const PIECE: usize = 512 << 10;
/// The maximum size of a file of rows in bytes.
const MAX_ROWS_BYTES: u64 = 64 << 30;
/// The directories for rows, in unnamed files: on a disk, since `/tmp` may be in memory.
const ROWS_IN: [&str; 2] = ["/var/tmp", "/tmp"];

/// Returns the total number of bytes.
pub(super) fn bytes(workload: &Workload) -> u64 {
    let files: u64 = workload.files.iter().map(|file| file.length).sum();
    files + workload.rows().map(|rows| rows.length).sum::<u64>()
}

/// Sends all content.
pub(super) fn send(
    workload: &Workload,
    to: &mut (impl FrameSink + ?Sized),
) -> Result<(), MessageError> {
    let contents = workload.files.iter().map(|file| file.content());
    for piece in contents.flat_map(|content| content.chunks(PIECE)) {
        to.send(piece)?;
    }
    let mut tables = workload.rows().filter_map(|rows| rows.table.as_ref());
    tables.try_for_each(|table| send_rows(table, to))
}

fn send_rows(table: &Table, to: &mut (impl FrameSink + ?Sized)) -> Result<(), MessageError> {
    let (mut at, mut piece) = (0, vec![0; PIECE]);
    while at < table.length() {
        let room = (table.length() - at).min(PIECE as u64) as usize;
        let count = table.bytes().read_at(at, &mut piece[..room])?;
        if count == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        to.send(&piece[..count])?;
        at += count as u64;
    }
    Ok(())
}

/// Receives all content, population after population.
pub(super) fn receive(
    mix: &mut Mix,
    from: &mut (impl FrameSource + ?Sized),
) -> Result<(), MessageError> {
    mix.assignments_mut().try_for_each(|drive| {
        let workload = &mut Arc::make_mut(drive).workload;
        receive_one(Arc::make_mut(workload), from)
    })
}

fn receive_one(
    workload: &mut Workload,
    from: &mut (impl FrameSource + ?Sized),
) -> Result<(), MessageError> {
    let mut left = MAX_ATTACHED_BYTES;
    for file in &mut workload.files {
        if file.length > left {
            let text = format!("more bytes of files than {MAX_ATTACHED_BYTES}");
            return Err(MessageError::Nonsense(text));
        }
        left -= file.length;
        let mut content = Vec::new();
        pieces(from, (&file.name, file.length), |piece| {
            content.extend_from_slice(piece);
            Ok(())
        })?;
        if !file.fill(content) {
            let text = format!("{} is another file than was said", file.name);
            return Err(MessageError::Nonsense(text));
        }
    }
    workload
        .rows_mut()
        .try_for_each(|data| rows(Arc::make_mut(data), from))
}

/// Receives rows, which are kept on the disk.
fn rows(data: &mut Data, from: &mut (impl FrameSource + ?Sized)) -> Result<(), MessageError> {
    if data.length > MAX_ROWS_BYTES {
        let text = format!("{} has more bytes than {MAX_ROWS_BYTES}", data.file);
        return Err(MessageError::Nonsense(text));
    }
    let mut file = nameless()?;
    pieces(from, (&data.file, data.length), |piece| {
        Ok(file.write_all(piece)?)
    })?;
    let filled = data.fill(Arc::new(file));
    filled.map_err(|why| MessageError::Nonsense(format!("{}: {why}", data.file)))
}

fn nameless() -> io::Result<File> {
    let [first, second] = ROWS_IN;
    tempfile::tempfile_in(first).or_else(|_| tempfile::tempfile_in(second))
}

/// Passes on received pieces until they reach the length of the file with this name.
fn pieces(
    from: &mut (impl FrameSource + ?Sized),
    (name, mut left): (&str, u64),
    mut take: impl FnMut(&[u8]) -> Result<(), MessageError>,
) -> Result<(), MessageError> {
    while left > 0 {
        match from.receive()? {
            Some(piece) if !piece.is_empty() && piece.len() as u64 <= left => {
                take(&piece)?;
                left -= piece.len() as u64;
            }
            _ => return Err(MessageError::Nonsense(format!("{name} ends early"))),
        }
    }
    Ok(())
}
