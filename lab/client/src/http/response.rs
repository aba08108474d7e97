//! Reads one response from pieces of bytes as they arrive. No I/O, and no allocation if the whole response is in one
//! piece.

use std::ops::Range;

use super::chunked::Chunked;
use super::head::{Fault, Framing, Head, parse_response_head};

/// The terms for reading a response, known beforehand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// The request was HEAD.
    pub head_request: bool,
    /// The maximum length of a head, and of a trailer section.
    pub max_header_bytes: usize,
    /// The maximum length of a body.
    pub max_body_bytes: u64,
}

/// A whole response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complete {
    /// Its status.
    pub status: u16,
    /// Bytes of its body.
    pub body_bytes: u64,
    /// Whether the connection may be used again.
    pub reusable: bool,
    /// Where the kept part of the body lies.
    pub body: StoredBody,
}

/// Where the kept part of a body lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoredBody {
    /// Whole, in this part of the last input.
    Input(Range<usize>),
    /// In [`ResponseReader::kept`].
    Kept,
}

/// Reads one response.
#[derive(Debug)]
pub struct ResponseReader {
    terms: Terms,
    stage: Stage,
    /// An incomplete head.
    carry: Vec<u8>,
    kept: Vec<u8>,
    keep: usize,
    status: u16,
    keep_alive: bool,
    body_bytes: u64,
}

#[derive(Debug)]
enum Stage {
    Head,
    Length(u64),
    Chunked(Chunked),
    UntilClose,
}

impl ResponseReader {
    /// Returns a reader at the beginning of a response.
    #[must_use]
    pub fn new(terms: Terms) -> Self {
        Self {
            terms,
            stage: Stage::Head,
            carry: Vec::new(),
            kept: Vec::new(),
            keep: 0,
            status: 0,
            keep_alive: false,
            body_bytes: 0,
        }
    }

    /// Takes the next bytes, at least one. `keep` returns, by status, how many bytes of a body to keep; `on_header`
    /// receives each header. Bytes after the response make the connection unusable.
    ///
    /// # Errors
    /// When the response breaks HTTP or a limit.
    pub fn feed(
        &mut self,
        input: &[u8],
        keep: impl Fn(u16) -> usize,
        on_header: &mut dyn FnMut(&str, &[u8]),
    ) -> Result<Option<Complete>, Fault> {
        if !matches!(self.stage, Stage::Head) {
            return self.body(input, 0);
        }
        if self.carry.is_empty() {
            return match self.head(input, &keep, on_header)? {
                Some(used) => self.body(input, used),
                None => {
                    self.carry.extend_from_slice(input);
                    self.check_head_size()
                }
            };
        }
        let before = self.carry.len();
        self.carry.extend_from_slice(input);
        let carry = std::mem::take(&mut self.carry);
        match self.head(&carry, &keep, on_header)? {
            // The head wasn't whole before this input, so it ends within it.
            Some(used) => self.body(input, used.saturating_sub(before)),
            None => {
                self.carry = carry;
                self.check_head_size()
            }
        }
    }

    /// Handles the end of the connection. Returns `Some` if it completes the response.
    #[must_use]
    pub fn end(&mut self) -> Option<Complete> {
        matches!(self.stage, Stage::UntilClose).then(|| self.complete(StoredBody::Kept, false))
    }

    /// Returns true if any byte of the response was received.
    #[must_use]
    pub fn begun(&self) -> bool {
        !matches!(self.stage, Stage::Head) || !self.carry.is_empty()
    }

    /// Returns the status and the number of body bytes received, once the head was received.
    #[must_use]
    pub fn so_far(&self) -> Option<(u16, u64)> {
        let past_head = !matches!(self.stage, Stage::Head);
        past_head.then_some((self.status, self.body_bytes))
    }

    /// Returns the part of the body kept since the last call.
    #[must_use]
    pub fn take_kept(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.kept)
    }

    /// Returns the kept part of a body that arrived in several pieces.
    #[must_use]
    pub fn kept(&self) -> &[u8] {
        &self.kept
    }

    /// Reads heads, and skips interim ones. Returns `Some(bytes used)` once the final one is read.
    fn head(
        &mut self,
        bytes: &[u8],
        keep: &impl Fn(u16) -> usize,
        on_header: &mut dyn FnMut(&str, &[u8]),
    ) -> Result<Option<usize>, Fault> {
        let mut used = 0;
        loop {
            // The headers of an interim response must not be taken for those of the final one.
            let rest = &bytes[used..];
            let is_interim = matches!(rest.get(8..10), Some([b' ', b'1']));
            let mut ignore = |_: &str, _: &[u8]| {};
            let sink: &mut dyn FnMut(&str, &[u8]) = if is_interim {
                &mut ignore
            } else {
                &mut *on_header
            };
            let Some(head) = parse_response_head(rest, self.terms.head_request, sink)? else {
                return Ok(None);
            };
            used += head.length;
            if used > self.terms.max_header_bytes {
                return Err(Fault::HeadTooLarge);
            }
            if head.status == 101 {
                return Err(Fault::SwitchedProtocols);
            }
            if head.status >= 200 {
                self.enter_body(head, keep)?;
                return Ok(Some(used));
            }
        }
    }

    fn check_head_size(&self) -> Result<Option<Complete>, Fault> {
        if self.carry.len() > self.terms.max_header_bytes {
            return Err(Fault::HeadTooLarge);
        }
        Ok(None)
    }

    fn enter_body(&mut self, head: Head, keep: &impl Fn(u16) -> usize) -> Result<(), Fault> {
        self.status = head.status;
        self.keep_alive = head.keep_alive;
        self.keep = keep(head.status);
        self.stage = match head.framing {
            Framing::None => Stage::Length(0),
            Framing::Length(length) if length > self.terms.max_body_bytes => {
                return Err(Fault::BodyTooLarge);
            }
            Framing::Length(length) => Stage::Length(length),
            Framing::Chunked => Stage::Chunked(Chunked::new(self.terms.max_header_bytes)),
            Framing::UntilClose => Stage::UntilClose,
        };
        Ok(())
    }

    /// Reads the body from `input[from..]` on.
    fn body(&mut self, input: &[u8], from: usize) -> Result<Option<Complete>, Fault> {
        match &mut self.stage {
            Stage::Head => Ok(None),
            Stage::Length(left) => {
                let here = usize::try_from(*left)
                    .unwrap_or(usize::MAX)
                    .min(input.len() - from);
                *left -= here as u64;
                let whole = *left == 0;
                let first = self.body_bytes == 0;
                self.body_bytes += here as u64;
                let end = from + here;
                if whole && first {
                    let body = StoredBody::Input(from..end);
                    return Ok(Some(self.complete(body, end == input.len())));
                }
                self.keep(&input[from..end]);
                Ok(whole.then(|| self.complete(StoredBody::Kept, end == input.len())))
            }
            Stage::UntilClose => {
                self.body_bytes += (input.len() - from) as u64;
                self.keep(&input[from..]);
                self.check_body_size()
            }
            Stage::Chunked(_) => self.chunks(input, from),
        }
    }

    fn chunks(&mut self, input: &[u8], from: usize) -> Result<Option<Complete>, Fault> {
        let mut used = from;
        while let Stage::Chunked(chunked) = &mut self.stage {
            let piece = chunked.next(&input[used..])?;
            used += piece.used;
            self.body_bytes += piece.data.len() as u64;
            self.keep(piece.data);
            self.check_body_size()?;
            if piece.done {
                return Ok(Some(self.complete(StoredBody::Kept, used == input.len())));
            }
            if used == input.len() {
                break;
            }
        }
        Ok(None)
    }

    fn check_body_size(&self) -> Result<Option<Complete>, Fault> {
        if self.body_bytes > self.terms.max_body_bytes {
            return Err(Fault::BodyTooLarge);
        }
        Ok(None)
    }

    fn keep(&mut self, data: &[u8]) {
        let space = self.keep.saturating_sub(self.kept.len());
        self.kept.extend_from_slice(&data[..data.len().min(space)]);
    }

    fn complete(&self, body: StoredBody, nothing_after: bool) -> Complete {
        Complete {
            status: self.status,
            body_bytes: self.body_bytes,
            reusable: self.keep_alive && nothing_after,
            body,
        }
    }
}
