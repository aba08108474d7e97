//! One connection: lines in, replies out, plain or within TLS; each with its timeout.

use std::fmt;
use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

/// Longest command. RFC 5321, 4.5.3.1.4, asks for 512, and RFC 4954 for more with AUTH.
const COMMAND_BYTES: usize = 4096;
/// Bytes of one read.
const READ_BYTES: usize = 16 << 10;
/// Longest time that a client may leave replies unread.
const SEND_TIMEOUT: Duration = Duration::from_secs(60);

/// A stream of bytes in both directions.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// A connection's buffers.
pub struct LineConnection {
    stream: Box<dyn Stream>,
    input: Vec<u8>,
    output: Vec<u8>,
}

/// Why no line was received.
#[derive(Debug)]
pub enum LineError {
    /// The connection ended or failed, or the client was too slow.
    Gone,
    /// The server stops.
    Stopping,
    /// The line took too long.
    Late,
    /// The line is too long.
    Long,
    /// The line ends with a bare LF.
    Bare,
}

impl From<io::Error> for LineError {
    fn from(_: io::Error) -> Self {
        Self::Gone
    }
}

impl fmt::Debug for LineConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line").finish_non_exhaustive()
    }
}

impl LineConnection {
    /// Returns a connection of which nothing was read.
    pub fn new(stream: Box<dyn Stream>) -> Self {
        Self {
            stream,
            input: Vec::new(),
            output: Vec::new(),
        }
    }

    /// Returns true if received input is not yet read.
    pub fn has_input(&self) -> bool {
        !self.input.is_empty()
    }

    /// Returns the stream, for another protocol; input that was received and not read is lost.
    pub fn into_stream(self) -> Box<dyn Stream> {
        self.stream
    }

    /// Appends a reply. Replies are sent before the next wait for input.
    pub fn reply(&mut self, line: &str) {
        self.output.extend_from_slice(line.as_bytes());
        self.output.extend_from_slice(b"\r\n");
    }

    /// Sends the replies.
    ///
    /// # Errors
    /// When the client is gone or receives nothing.
    pub async fn flush(&mut self) -> Result<(), LineError> {
        if self.output.is_empty() {
            return Ok(());
        }
        let sent = async {
            self.stream.write_all(&self.output).await?;
            self.stream.flush().await
        };
        timeout(SEND_TIMEOUT, sent)
            .await
            .map_err(|_| LineError::Gone)??;
        self.output.clear();
        Ok(())
    }

    /// Reads the next line with its CR LF. The bound is on the whole line, so that single bytes
    /// don't extend it.
    ///
    /// # Errors
    /// See [`LineError`].
    pub async fn line(&mut self, within: Duration) -> Result<Vec<u8>, LineError> {
        if let Some(line) = self.take_line()? {
            return Ok(line);
        }
        self.flush().await?;
        let read = async {
            loop {
                self.fill().await?;
                if let Some(line) = self.take_line()? {
                    return Ok(line);
                }
            }
        };
        timeout(within, read).await.unwrap_or(Err(LineError::Late))
    }

    fn take_line(&mut self) -> Result<Option<Vec<u8>>, LineError> {
        let Some(end) = self.input.iter().position(|byte| *byte == b'\n') else {
            return match self.input.len() > COMMAND_BYTES {
                true => Err(LineError::Long),
                false => Ok(None),
            };
        };
        if end > COMMAND_BYTES {
            return Err(LineError::Long);
        }
        if end == 0 || self.input[end - 1] != b'\r' {
            return Err(LineError::Bare);
        }
        Ok(Some(self.input.drain(..=end).collect()))
    }

    /// Reads once.
    async fn fill(&mut self) -> io::Result<()> {
        self.input.reserve(READ_BYTES);
        match self.stream.read_buf(&mut self.input).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    /// Passes received bytes to `take`, which returns how many it consumed and whether the text has ended.
    ///
    /// # Errors
    /// See [`LineError`].
    pub async fn text(
        &mut self,
        within: Duration,
        mut take: impl FnMut(&[u8]) -> (usize, bool),
    ) -> Result<(), LineError> {
        self.flush().await?;
        let read = async {
            loop {
                if !self.input.is_empty() {
                    let (taken, is_end) = take(&self.input);
                    self.input.drain(..taken);
                    if is_end {
                        return Ok(());
                    }
                }
                self.fill().await?;
            }
        };
        timeout(within, read).await.unwrap_or(Err(LineError::Late))
    }
}
