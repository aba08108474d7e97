//! A message in its sent form: text, and the content of files in between, which all senders share. It doesn't know the
//! meaning of the text.

use std::borrow::Cow;
use std::io::{self, IoSlice};
use std::task::{Context, Poll};

use bytes::Bytes;
use lab_workload::sign::Outgoing;
use lab_workload::{Credentials, RenderError, Signer, TraceContext, UserScope};

use super::cookie::{Jar, RenderedCookie};
use crate::connection::{Connection, TURN_BYTES};

/// The maximum number of slices per system call.
pub(super) const SLICES: usize = 16;

/// A rendered message.
#[derive(Debug, Default)]
pub(super) struct Message {
    /// The message without the files.
    pub(super) text: String,
    /// The files, with the places in the text before which they stand; in order.
    files: Vec<(usize, Bytes)>,
    /// The trace that the message begins.
    pub(super) trace: Option<TraceContext>,
    /// The offset in the text and the length of its credentials and signature.
    signature: Option<(usize, usize)>,
    /// Whether its credentials answer a challenge.
    pub(super) is_answer: bool,
    /// The number of challenges that the message has answered.
    pub(super) challenges: u8,
    /// A redirect led to another server than the original one, so that the message is not signed.
    pub(super) is_foreign: bool,
    /// The workload's cookies of its request, which a redirect sends again.
    pub(super) cookies: Box<[RenderedCookie]>,
}

impl Message {
    /// Returns a message of text alone.
    pub(super) fn new(text: String) -> Self {
        Self {
            text,
            files: Vec::new(),
            trace: None,
            signature: None,
            is_answer: false,
            challenges: 0,
            is_foreign: false,
            cookies: Box::default(),
        }
    }

    /// Returns the message with the trace that it begins.
    pub(super) fn of_trace(self, trace: Option<TraceContext>) -> Self {
        Self { trace, ..self }
    }

    /// Adds a file behind the current text.
    pub(super) fn push_file(&mut self, content: &Bytes) {
        if !content.is_empty() {
            self.files.push((self.text.len(), content.clone()));
        }
    }

    /// Adds the `Authorization` header behind the other headers.
    pub(super) fn authorize(
        &mut self,
        credentials: &Credentials,
        scope: &mut UserScope,
        jar: &Jar,
    ) -> Result<(), RenderError> {
        let mut words = self.text.split(' ');
        let request = (
            words.next().unwrap_or_default(),
            words.next().unwrap_or_default(),
        );
        let value = jar.answer(|challenge| credentials.header(request, scope, challenge))?;
        self.is_answer = value.is_some();
        if let Some(value) = value {
            let end = self.head_end();
            self.add_signature(end + 2, &format!("Authorization: {value}\r\n"));
        }
        Ok(())
    }

    /// Signs the current message, behind its other headers.
    pub(super) fn sign(
        &mut self,
        signer: &Signer,
        secure: bool,
        scope: &mut UserScope,
    ) -> Result<(), RenderError> {
        let end = self.head_end();
        let body = self.pieces((end + 4).min(self.text.len()));
        let body = body.map(|piece| piece.bytes()).collect();
        let request = Outgoing::new(&self.text[..end], secure, body);
        let headers = signer.headers(request, self.plain().is_none(), scope)?;
        let line = |(name, value): &(String, String)| format!("{name}: {}\r\n", value.trim());
        self.add_signature(end + 2, &headers.iter().map(line).collect::<String>());
        Ok(())
    }

    /// Returns the end of the last header.
    fn head_end(&self) -> usize {
        self.text.find("\r\n\r\n").unwrap_or(self.text.len())
    }

    fn add_signature(&mut self, at: usize, lines: &str) {
        self.text.insert_str(at, lines);
        for (place, _) in &mut self.files {
            *place += lines.len();
        }
        // A signature follows the credentials, which it may cover.
        let (from, before) = self.signature.unwrap_or((at, 0));
        self.signature = Some((from, before + lines.len()));
    }

    /// Removes the signature, so that the message can be signed again.
    pub(super) fn remove_signature(&mut self) {
        let Some((at, length)) = self.signature.take() else {
            return;
        };
        self.text.replace_range(at..at + length, "");
        for (place, _) in &mut self.files {
            *place -= length;
        }
    }

    /// Returns the text, if the message has no files.
    #[inline]
    pub(super) fn plain(&self) -> Option<&str> {
        self.files.is_empty().then_some(&self.text)
    }

    /// Returns the total bytes.
    #[inline]
    pub(super) fn len(&self) -> usize {
        let files: usize = self.files.iter().map(|(_, file)| file.len()).sum();
        self.text.len() + files
    }

    /// Returns the pieces of the message, from this place in its text on.
    pub(super) fn pieces(&self, from: usize) -> impl Iterator<Item = Piece<'_>> {
        let mut next = from;
        let files = self.files.iter().flat_map(move |(place, file)| {
            let before = &self.text[next..*place];
            next = *place;
            [Piece::Text(before), Piece::File(file)]
        });
        let last = self.files.last().map_or(from, |(place, _)| *place);
        files.chain(std::iter::once_with(move || {
            Piece::Text(&self.text[last..])
        }))
    }

    /// Fills `slices` with at most `most` pieces behind the first `written` bytes, and returns the number of slices
    /// filled.
    pub(super) fn slices<'a>(
        &'a self,
        mut written: usize,
        mut most: usize,
        slices: &mut [IoSlice<'a>; SLICES],
    ) -> usize {
        let mut used = 0;
        for piece in self.pieces(0) {
            let bytes = piece.bytes();
            let skipped = written.min(bytes.len());
            written -= skipped;
            let rest = &bytes[skipped..];
            let rest = &rest[..rest.len().min(most)];
            if !rest.is_empty() {
                slices[used] = IoSlice::new(rest);
                most -= rest.len();
                used += 1;
            }
            if used == SLICES || most == 0 {
                break;
            }
        }
        used
    }

    /// Writes the next turn of the message behind `written` bytes, and increases `written`.
    #[inline]
    pub(super) fn poll_write(
        &self,
        cx: &mut Context<'_>,
        connection: &mut Connection,
        written: &mut usize,
    ) -> Poll<io::Result<()>> {
        if let Some(text) = self.plain() {
            return connection.poll_write_turn(cx, text.as_bytes(), written);
        }
        let mut slices = [IoSlice::new(&[]); SLICES];
        let used = self.slices(*written, TURN_BYTES, &mut slices);
        connection.poll_write_slices(cx, &slices[..used], written)
    }

    /// Returns the whole message as contiguous bytes.
    pub(super) fn whole(&self) -> Cow<'_, [u8]> {
        match self.plain() {
            Some(text) => Cow::Borrowed(text.as_bytes()),
            None => {
                let pieces: Vec<&[u8]> = self.pieces(0).map(|piece| piece.bytes()).collect();
                Cow::Owned(pieces.concat())
            }
        }
    }

    /// Returns the message with another head in place of the first `head` bytes of its text.
    pub(super) fn with_head(&self, head: usize, other: String) -> Self {
        let mut message = Self::new(other).of_trace(self.trace);
        for piece in self.pieces(head) {
            match piece {
                Piece::Text(text) => message.text.push_str(text),
                Piece::File(content) => message.push_file(content),
            }
        }
        message
    }
}

/// A part of a message.
#[derive(Debug, Clone, Copy)]
pub(super) enum Piece<'a> {
    Text(&'a str),
    File(&'a Bytes),
}

impl<'a> Piece<'a> {
    fn bytes(self) -> &'a [u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::File(content) => content,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message(pieces: &[(String, Vec<u8>)]) -> (Message, Vec<u8>) {
        let mut message = Message::new("head".to_owned());
        let mut whole = b"head".to_vec();
        for (text, file) in pieces {
            message.text.push_str(text);
            whole.extend(text.bytes());
            message.push_file(&Bytes::copy_from_slice(file));
            whole.extend(file);
        }
        (message, whole)
    }

    #[test]
    fn a_signature_is_put_before_the_files_and_taken_out_again() {
        let (mut message, whole) =
            message(&[("text".to_owned(), vec![1, 255]), (String::new(), vec![2])]);
        for _ in 0..2 {
            message.add_signature(4, "sum");
            assert_eq!(
                message.whole(),
                [b"headsumtext".as_slice(), &[1, 255, 2]].concat()
            );
            message.remove_signature();
            assert_eq!(&*message.whole(), &whole[..]);
        }
        message.remove_signature();
        assert_eq!(&*message.whole(), &whole[..]);
    }

    proptest! {
        #[test]
        fn it_goes_out_in_its_order_however_little_is_taken_at_once(
            pieces in proptest::collection::vec(("[a-cä]{0,3}", proptest::collection::vec(any::<u8>(), 0..5)), 0..20),
            most in 1usize..9,
        ) {
            let (message, whole) = message(&pieces);
            prop_assert_eq!(message.len(), whole.len());
            prop_assert_eq!(&*message.whole(), &whole[..]);
            let mut out = Vec::new();
            while out.len() < whole.len() {
                let mut slices = [IoSlice::new(&[]); SLICES];
                let used = message.slices(out.len(), most, &mut slices);
                prop_assert!(used > 0);
                slices[..used].iter().for_each(|slice| out.extend_from_slice(slice));
            }
            prop_assert_eq!(out, &whole[..]);
            let other = message.with_head(4, "another".to_owned());
            prop_assert_eq!(&other.whole()[..7], b"another");
            prop_assert_eq!(&other.whole()[7..], &whole[4..]);
        }
    }
}
