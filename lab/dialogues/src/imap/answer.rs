//! Reads an IMAP server's responses: the frame of each, and their result for the command.

use serde_json::{Map, Value};

use super::data;

/// The tag of all commands: only one is pending at a time, and servers accept a reused tag (RFC 9051, section 2.2.1).
pub(super) const TAG: &[u8] = b"a ";

/// Longest line of a response. Long data arrives as a literal, except for lists of numbers.
const MAX_LINE: usize = 4 << 20;

/// Reads responses incrementally.
#[derive(Default)]
pub struct ImapAnswer {
    /// Whether response data is kept.
    is_read: bool,
    /// The server's greeting is expected.
    greets: bool,
    /// The response so far.
    response: Vec<u8>,
    /// Start of the current line in it.
    line: usize,
    /// Bytes of a literal still to be received.
    literal: usize,
    told: Map<String, Value>,
    ends: bool,
}

/// A response's result for the command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImapResult {
    /// The server's greeting, possibly preauthenticated.
    Greeting {
        /// Whether the connection is preauthenticated.
        is_known: bool,
    },
    /// The server requests a continuation.
    Goes,
    /// The command succeeded.
    Ok,
    /// The command was refused, with the reason.
    No(String),
}

impl ImapAnswer {
    /// Discards the previous response, and sets whether the data of the next is kept.
    pub fn begin(&mut self, is_read: bool) {
        *self = Self {
            is_read,
            response: std::mem::take(&mut self.response),
            ..Self::default()
        };
        self.response.clear();
    }

    /// Expects the server's greeting next.
    pub fn greeting(&mut self) {
        self.greets = true;
    }

    /// Returns true if the server ends the connection.
    pub fn ends(&self) -> bool {
        self.ends
    }

    /// Reads up to the result of the command.
    ///
    /// # Errors
    /// Describes data that is not IMAP.
    pub fn read(&mut self, heard: &mut &[u8]) -> Result<Option<ImapResult>, String> {
        while self.whole(heard)? {
            let response = std::mem::take(&mut self.response);
            let told = self.response(&response);
            self.response = response;
            self.response.clear();
            self.line = 0;
            if let Some(told) = told? {
                return Ok(Some(told));
            }
        }
        Ok(None)
    }

    /// Writes the collected data as JSON: `{"exists": 3, "fetch": [{"seq": 1, "uid": 7}], "text": "done"}`.
    pub fn end(&mut self, body: &mut Vec<u8>) {
        body.clear();
        if self.is_read {
            // Writing to memory can't fail.
            let _infallible = serde_json::to_writer(body, &self.told);
        }
    }

    /// Takes the data of the response; returns true if it is complete.
    fn whole(&mut self, heard: &mut &[u8]) -> Result<bool, String> {
        loop {
            let literal = self.literal.min(heard.len());
            self.take(literal, heard);
            self.literal -= literal;
            if self.literal > 0 || heard.is_empty() {
                return Ok(false);
            }
            if literal > 0 {
                self.line = self.response.len();
            }
            let end = memchr::memchr(b'\n', heard);
            self.take(end.map_or(heard.len(), |end| end + 1), heard);
            let line = &self.response[self.line..];
            if line.len() > MAX_LINE {
                return Err(format!("a line has more than {MAX_LINE} bytes"));
            }
            if end.is_none() {
                return self.may_begin().map(|()| false);
            }
            self.may_begin()?;
            let Some(line) = line.strip_suffix(b"\r\n") else {
                return Err("a line doesn't end as lines of IMAP do".to_owned());
            };
            let is_data = |response: &[u8]| !data::is_text(response);
            if !self.response.strip_prefix(b"* ").is_some_and(is_data) {
                return Ok(true);
            }
            let Some(length) = data::announced(line) else {
                return Ok(true);
            };
            self.literal = length;
            self.line = self.response.len();
        }
    }

    fn take(&mut self, count: usize, heard: &mut &[u8]) {
        let (taken, rest) = heard.split_at(count);
        self.response.extend_from_slice(taken);
        *heard = rest;
    }

    /// Checks the start of a response.
    fn may_begin(&self) -> Result<(), String> {
        let agrees = |begin: &[u8]| {
            let common = begin.len().min(self.response.len());
            begin[..common] == self.response[..common]
        };
        match agrees(b"* ") || agrees(b"+") || (!self.greets && agrees(TAG)) {
            true => Ok(()),
            false => Err("what the server says is none of IMAP".to_owned()),
        }
    }

    /// Processes a complete response.
    fn response(&mut self, response: &[u8]) -> Result<Option<ImapResult>, String> {
        let response = response.strip_suffix(b"\r\n").unwrap_or(response);
        if response.starts_with(b"+") {
            return Ok(Some(ImapResult::Goes));
        }
        if let Some(untagged) = response.strip_prefix(b"* ") {
            return self.untagged(untagged);
        }
        let status = response.strip_prefix(TAG);
        let status = status.ok_or("the answer to another command")?;
        let text = String::from_utf8_lossy(status).into_owned();
        let (kind, words) = text.split_once(' ').unwrap_or((&text, ""));
        if !kind.eq_ignore_ascii_case("OK") {
            return Ok(Some(ImapResult::No(text)));
        }
        if self.is_read {
            data::status(words, &mut self.told);
        }
        Ok(Some(ImapResult::Ok))
    }

    fn untagged(&mut self, response: &[u8]) -> Result<Option<ImapResult>, String> {
        let is = |word: &[u8]| {
            let start = response.get(..word.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(word))
        };
        let says_bye = is(b"BYE");
        self.ends |= says_bye;
        if std::mem::take(&mut self.greets) {
            let is_known = is(b"PREAUTH");
            return match is_known || is(b"OK") {
                true => Ok(Some(ImapResult::Greeting { is_known })),
                false if says_bye => Ok(Some(ImapResult::No(
                    String::from_utf8_lossy(response).into(),
                ))),
                false => Err("the server doesn't greet as servers of IMAP do".to_owned()),
            };
        }
        if self.is_read {
            data::untagged(response, &mut self.told)?;
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests;
