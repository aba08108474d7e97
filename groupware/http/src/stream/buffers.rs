//! The buffers that streamed bodies share.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes of a buffer: the usual chunk size of uploads.
pub(crate) const BUFFER_BYTES: usize = 256 << 10;

/// Alignment of a buffer's bytes in memory, as writes past the page cache require.
const ALIGN_BYTES: usize = 4096;

/// A bounded set of buffers, allocated on first use and then kept.
#[derive(Debug)]
pub struct Buffers {
    room: Arc<Semaphore>,
    free: Mutex<Vec<Vec<u8>>>,
}

/// A buffer; dropping it returns it to the set.
#[derive(Debug)]
pub struct Buffer {
    /// The content begins at `start`.
    bytes: Vec<u8>,
    start: usize,
    of: Arc<Buffers>,
    _permit: OwnedSemaphorePermit,
}

impl Buffers {
    /// Returns as many buffers as fit into so many bytes.
    pub fn new(bytes: usize) -> Self {
        Self {
            room: Arc::new(Semaphore::new(bytes / BUFFER_BYTES)),
            free: Mutex::default(),
        }
    }

    /// Waits for an empty buffer; first in, first out.
    pub async fn take(self: &Arc<Self>) -> Buffer {
        let permit = Arc::clone(&self.room).acquire_owned().await;
        let free = self
            .free
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        let mut bytes = free.unwrap_or_else(|| Vec::with_capacity(BUFFER_BYTES + ALIGN_BYTES));
        let start = bytes.as_ptr().align_offset(ALIGN_BYTES).min(ALIGN_BYTES);
        bytes.resize(start, 0);
        Buffer {
            bytes,
            start,
            of: Arc::clone(self),
            _permit: permit.expect("the room is never closed"),
        }
    }
}

impl Buffer {
    /// The bytes in it.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// The number of bytes that still fit in.
    pub fn room(&self) -> usize {
        BUFFER_BYTES - self.bytes().len()
    }

    /// Appends as many of these bytes as fit in; returns their number.
    pub fn add(&mut self, bytes: &[u8]) -> usize {
        let count = bytes.len().min(self.room());
        self.bytes.extend_from_slice(&bytes[..count]);
        count
    }

    /// Drops the first bytes.
    pub fn drop_front(&mut self, count: usize) {
        self.bytes.drain(self.start..self.start + count);
    }

    /// Replaces the content by so many bytes that `fill` writes.
    ///
    /// # Errors
    /// Those of `fill`.
    pub fn fill<E>(
        &mut self,
        count: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.bytes.resize(self.start + count.min(BUFFER_BYTES), 0);
        fill(&mut self.bytes[self.start..])
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        let mut free = self.of.free.lock().unwrap_or_else(PoisonError::into_inner);
        free.push(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_so_many_buffers_and_they_come_back_empty() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime.block_on(async {
            let buffers = Arc::new(Buffers::new(2 * BUFFER_BYTES));
            let (mut first, second) = (buffers.take().await, buffers.take().await);
            assert_eq!(first.add(&[7; BUFFER_BYTES + 5]), BUFFER_BYTES);
            assert_eq!(first.add(&[7]), 0);
            first.drop_front(3);
            assert_eq!((first.room(), first.bytes().len()), (3, BUFFER_BYTES - 3));
            let mut third = std::pin::pin!(buffers.take());
            tokio::select! {
                biased;
                _ = third.as_mut() => panic!("there are two"),
                () = std::future::ready(()) => {}
            }
            drop(first);
            let third = third.await;
            assert!(third.bytes().is_empty() && third.room() == BUFFER_BYTES);
            assert_eq!(third.bytes().as_ptr().align_offset(ALIGN_BYTES), 0);
            drop((second, third));
            assert_eq!(buffers.free.lock().unwrap().len(), 2);
        });
    }
}
