//! The content of the files that a drive's requests carry, on its way to a generator: in frames behind the
//! first message, so that no message grows with it.

use std::sync::Arc;

use lab_workload::{Attached, MAX_ATTACHED_BYTES, Workload};

use super::channel::{FrameSink, FrameSource};
use super::error::MessageError;
use crate::drive::Drive;

/// Bytes of a frame.
const PIECE: usize = 512 << 10;

/// Sends all of it.
pub(super) fn send(
    workload: &Workload,
    to: &mut (impl FrameSink + ?Sized),
) -> Result<(), MessageError> {
    let contents = workload.files.iter().map(Attached::content);
    for piece in contents.flat_map(|content| content.chunks(PIECE)) {
        to.send(piece)?;
    }
    Ok(())
}

/// Takes all of it in.
pub(super) fn receive(
    drive: &mut Drive,
    from: &mut (impl FrameSource + ?Sized),
) -> Result<(), MessageError> {
    let files = &mut Arc::make_mut(&mut drive.workload).files;
    let nonsense = |text: String| Err(MessageError::Nonsense(text));
    let mut left = MAX_ATTACHED_BYTES;
    for file in files {
        if file.length > left {
            return nonsense(format!("more bytes of files than {MAX_ATTACHED_BYTES}"));
        }
        left -= file.length;
        let mut content = Vec::new();
        while (content.len() as u64) < file.length {
            match from.receive()? {
                Some(piece) if !piece.is_empty() => content.extend_from_slice(&piece),
                _ => return nonsense(format!("{} ends early", file.name)),
            }
        }
        if !file.fill(content) {
            return nonsense(format!("{} is another file than was said", file.name));
        }
    }
    Ok(())
}
