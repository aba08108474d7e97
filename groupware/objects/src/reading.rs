//! An object that is read as its reader comes along: one request for all that is wanted, whose answer is taken in
//! pieces, so that what is in memory is bounded by the buffers of a connection.
//!
//! Who reads slowly may find the connection closed, and a store that comes back has forgotten it: then the rest is
//! asked for anew, where the records say that the content is by now.

use std::fmt;
use std::io;
use std::sync::{Mutex, PoisonError};

use bytes::{Buf, Bytes};
use groupware_content::{ContentError, ContentHash, ReadAt};

use crate::bucket::Stream;
use crate::index::{Index, name};

/// How often the same piece is tried.
const TRIES: u32 = 3;

/// Content on its way out.
pub(crate) struct Reading {
    index: Index,
    hash: ContentHash,
    /// Behind the last byte that is wanted.
    end: u64,
    open: Mutex<Option<Open>>,
}

/// An answer under way.
struct Open {
    stream: Stream,
    /// What came and wasn't wanted yet.
    rest: Bytes,
    /// Where in the content that begins.
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
    /// Asks for so many bytes from `at` on.
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

    /// Fills the buffer from the answer under way, or from a new one.
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
