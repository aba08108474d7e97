//! Reads an object at the pace of its reader: one request for the wanted range, whose response is read in pieces, so
//! that the memory is bounded by the buffers of a connection.
//!
//! A slow reader may find the connection closed, for example after a restart of the store. Then the rest is requested
//! again, from the object that the records have for the content by then.

use std::fmt;
use std::io;
use std::sync::{Mutex, PoisonError};

use bytes::{Buf, Bytes};
use groupware_content::{ContentError, ContentHash, ReadAt};

use crate::bucket::Stream;
use crate::index::{Index, name};

/// The maximum number of attempts for the same piece.
const TRIES: u32 = 3;

/// A read of content in progress.
pub(crate) struct Reading {
    index: Index,
    hash: ContentHash,
    /// The end of the wanted range.
    end: u64,
    open: Mutex<Option<Open>>,
}

/// A response in progress.
struct Open {
    stream: Stream,
    /// Bytes that arrived but were not read yet.
    rest: Bytes,
    /// The offset of those in the content.
    at: u64,
}

impl fmt::Debug for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reading")
            .field("hash", &self.hash)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}

impl Reading {
    /// Requests this many bytes from `at` on.
    pub(crate) fn begin(
        index: Index,
        hash: ContentHash,
        (at, bytes): (u64, u64),
    ) -> Result<Self, ContentError> {
        let reading = Self {
            index,
            hash,
            end: at.saturating_add(bytes),
            open: Mutex::default(),
        };
        if bytes > 0 {
            let opened = reading.open_at(at)?;
            *reading.open.lock().unwrap_or_else(PoisonError::into_inner) = Some(opened);
        }
        Ok(reading)
    }

    fn open_at(&self, at: u64) -> Result<Open, ContentError> {
        let missing = || ContentError::Missing {
            path: self.hash.to_string().into(),
        };
        let object = self.index.find(self.hash)?.ok_or_else(missing)?;
        let name = name(self.hash, object.id);
        let stream = self.index.bucket.open(&name, at..self.end)?;
        Ok(Open {
            stream,
            rest: Bytes::new(),
            at,
        })
    }

    /// Fills the buffer from the current response, or from a new one.
    fn fill(
        &self,
        open: &mut Option<Open>,
        buffer: &mut [u8],
        at: u64,
    ) -> Result<(), ContentError> {
        let mut answer = match open.take().filter(|open| open.at == at) {
            Some(answer) => answer,
            None => self.open_at(at)?,
        };
        let mut filled = 0;
        while filled < buffer.len() {
            if answer.rest.is_empty() {
                let next = self.index.bucket.next(&mut answer.stream)?;
                let ended = || ContentError::Away("the object ended before its end".into());
                answer.rest = next.ok_or_else(ended)?;
            }
            let count = answer.rest.len().min(buffer.len() - filled);
            buffer[filled..filled + count].copy_from_slice(&answer.rest[..count]);
            answer.rest.advance(count);
            answer.at += count as u64;
            filled += count;
        }
        *open = Some(answer);
        Ok(())
    }
}

impl ReadAt for Reading {
    fn read_exact_at(&self, buffer: &mut [u8], at: u64) -> io::Result<()> {
        if buffer.is_empty() {
            return Ok(());
        }
        if at.saturating_add(buffer.len() as u64) > self.end {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let mut tries = 0;
        loop {
            tries += 1;
            match self.fill(&mut open, buffer, at) {
                Ok(()) => return Ok(()),
                Err(ContentError::Away(_)) if tries < TRIES => {}
                Err(error) => return Err(io::Error::other(error)),
            }
        }
    }
}
