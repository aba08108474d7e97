//! Decodes encoded words (RFC 2047) and raw letters in heads.
//!
//! Adjacent words are one text: their bytes are joined before decoding, since many programs split
//! letters. The result is one word in UTF-8, which parsers of heads leave alone, so that no decoded
//! letter is parsed as syntax.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use mail_parser::decoders::base64::base64_decode;
use mail_parser::{Message, MessageParser};

use crate::charset::{self, text_of_head};
use crate::head::{fields, head_bytes};
use crate::transfer::hex_at;

/// The head of a message with all texts converted to UTF-8, for parsing.
#[derive(Debug)]
pub struct Head<'a>(Cow<'a, [u8]>);

impl<'a> Head<'a> {
    /// Converts the head of a message.
    pub fn of(message: &'a [u8]) -> Self {
        let head = &message[..head_bytes(message)];
        let is_plain = head.is_ascii() && !head.contains(&0x1b) && find(head, b"=?").is_none();
        if is_plain {
            return Self(Cow::Borrowed(head));
        }
        let mut text = Vec::with_capacity(head.len());
        for field in fields(head) {
            let field = text_of_head(field);
            rewrite(&field, &mut text, |word, text| {
                text.extend_from_slice(b"=?utf-8?B?");
                text.extend_from_slice(STANDARD.encode(word).as_bytes());
                text.extend_from_slice(b"?=");
            });
        }
        Self(Cow::Owned(text))
    }

    /// Parses its fields. `None` if there are none.
    pub fn parse(&self) -> Option<Message<'_>> {
        MessageParser::new().parse_headers(&*self.0)
    }
}

/// Decodes the encoded words in a text.
pub(crate) fn decoded(text: &str) -> Cow<'_, str> {
    if !text.contains("=?") {
        return Cow::Borrowed(text);
    }
    let mut decoded = Vec::with_capacity(text.len());
    rewrite(text, &mut decoded, |word, decoded| {
        decoded.extend_from_slice(word.as_bytes());
    });
    Cow::Owned(String::from_utf8_lossy(&decoded).into_owned())
}

/// Copies a text; `put` writes the replacement of each run of encoded words.
fn rewrite(text: &str, to: &mut Vec<u8>, put: impl Fn(&str, &mut Vec<u8>)) {
    let mut rest = text;
    while let Some(at) = rest.find("=?") {
        let (before, from) = rest.split_at(at);
        to.extend_from_slice(before.as_bytes());
        let mut run = Run::default();
        rest = from;
        let mut ahead = from;
        while let Some((word, after)) = Word::parse(ahead) {
            run.push(&word);
            rest = after;
            ahead = after.trim_start_matches([' ', '\t', '\r', '\n']);
        }
        if rest.len() == from.len() {
            to.extend_from_slice(b"=?");
            rest = &from[2..];
            continue;
        }
        put(&run.text(), to);
    }
    to.extend_from_slice(rest.as_bytes());
}

/// An encoded word.
struct Word<'a> {
    charset: &'a str,
    is_base64: bool,
    text: &'a str,
}

impl<'a> Word<'a> {
    /// Parses the word at the start of a text; returns it and the rest.
    fn parse(text: &'a str) -> Option<(Self, &'a str)> {
        const CHARSET_BYTES: usize = 64;
        let rest = text.strip_prefix("=?")?;
        let end = rest
            .bytes()
            .take(CHARSET_BYTES)
            .position(|byte| byte == b'?')?;
        let charset = &rest[..end];
        // A star precedes a language (RFC 2231, 5).
        let charset = charset.split('*').next().unwrap_or_default();
        let is_token = |byte: u8| byte.is_ascii_graphic();
        let (encoding, data) = rest[end + 1..].split_once('?')?;
        let is_base64 = match encoding {
            "b" | "B" => true,
            "q" | "Q" => false,
            _ => return None,
        };
        // A word ends within its line.
        let line = data.split('\n').next().unwrap_or_default();
        let end = line.find("?=")?;
        let word = Self {
            charset,
            is_base64,
            text: &data[..end],
        };
        let is_one = charset.len() > 1 && charset.bytes().all(is_token);
        is_one.then(|| (word, &data[end + 2..]))
    }
}

/// Adjacent words.
#[derive(Default)]
struct Run {
    /// The decoded text of words with other character sets.
    text: String,
    charset: String,
    bytes: Vec<u8>,
    /// Base64 to be decoded with the next word: some programs split it anywhere.
    base64: String,
}

impl Run {
    fn push(&mut self, word: &Word<'_>) {
        if !self.charset.eq_ignore_ascii_case(word.charset) {
            self.flush();
            word.charset.clone_into(&mut self.charset);
        }
        if word.is_base64 {
            let letters = word.text.bytes().filter(|byte| is_base64(*byte));
            self.base64.extend(letters.map(char::from));
            if word.text.ends_with('=') {
                self.flush_base64();
            }
            return;
        }
        self.flush_base64();
        let text = word.text.as_bytes();
        let mut at = 0;
        while let Some(byte) = text.get(at) {
            let (byte, step) = match (byte, hex_at(text, at)) {
                (_, Some(byte)) => (byte, 3),
                (b'_', _) => (b' ', 1),
                (byte, _) => (*byte, 1),
            };
            self.bytes.push(byte);
            at += step;
        }
    }

    fn flush_base64(&mut self) {
        self.bytes
            .extend(base64_decode(self.base64.as_bytes()).unwrap_or_default());
        self.base64.clear();
    }

    fn flush(&mut self) {
        self.flush_base64();
        self.text += &charset::decode(&self.bytes, Some(&self.charset));
        self.bytes.clear();
    }

    fn text(mut self) -> String {
        self.flush();
        self.text
    }
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .position(|found| found == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(field: &[u8]) -> String {
        let message = [b"Subject: ", field, b"\r\n\r\nx"].concat();
        let head = Head::of(&message);
        let parsed = head.parse().unwrap();
        parsed.subject().unwrap_or_default().to_owned()
    }

    #[test]
    fn words_are_joined_before_they_are_decoded() {
        for (field, text) in [
            (
                "=?UTF-8?Q?Hafen=C3=BCbung_im_Fr=C3?=\r\n =?UTF-8?Q?=BChjahr?=",
                "Hafenübung im Frühjahr",
            ),
            ("=?utf-8?B?w?= =?utf-8?B?7w=?= x", "ü x"),
            ("=?UTF-8?B?QmrD?=\r\n\t=?utf-8?B?tnJu?=", "Björn"),
            ("=?utf-8?Q?=F0=9F?= =?UTF-8?B?mqI=?=", "🚢"),
            ("=?gb2312?B?uA==?=\r\n =?GB2312?B?2w==?=", "港"),
            ("=?utf-8*de?Q?Gr=C3=BC=C3=9Fe?=", "Grüße"),
            ("=?iso-8859-1?Q?Gr=FC?= =?utf-8?Q?=C3=9Fe?=", "Grüße"),
            ("Re: =?utf-8?Q?a?= b =?utf-8?Q?c?=", "Re: a b c"),
            ("=?utf-8?Q?a?==?utf-8?Q?b?=", "ab"),
            ("=?cp932?B?jWA=?=", "港"),
            ("=?iso-2022-jp?B?GyRCOUEbKEI=?=", "港"),
            ("=?utf-8?Q?100=%_sure?=", "100=% sure"),
            ("=?utf-8?B?SGk!?=", "Hi"),
            ("=?x-unknown?Q?Gr=FC=DFe?=", "Grüße"),
            // Text that is no word stays.
            ("=?utf-8?X?a?=", "=?utf-8?X?a?="),
            ("=?utf-8?Q?a", "=?utf-8?Q?a"),
            ("1 =? 2", "1 =? 2"),
        ] {
            assert_eq!(subject(field.as_bytes()), text, "{field}");
            assert_eq!(decoded(field).replace("\r\n", ""), text, "{field}");
        }
    }

    #[test]
    fn raw_letters_are_read() {
        for (field, text) in [
            ("Grüße".as_bytes(), "Grüße"),
            (b"Gr\xfc\xdfe aus dem S\xfcden", "Grüße aus dem Süden"),
            (b"\x1b$B9A\x1b(B", "港"),
        ] {
            assert_eq!(subject(field), text);
        }
    }

    #[test]
    fn no_decoded_letter_is_a_sign_of_the_grammar() {
        let message = b"From: =?utf-8?Q?Boss_=3Cboss=40here=3E=2C?= =?utf-8?Q?=0D=0ATo:_x?= <eve@there>\r\n\r\n";
        let head = Head::of(message);
        let parsed = head.parse().unwrap();
        let people: Vec<_> = parsed.from().unwrap().iter().collect();
        assert_eq!(people.len(), 1);
        assert_eq!(people[0].address(), Some("eve@there"));
        assert!(parsed.to().is_none());
    }
}
