//! Requests of plain TCP and UDP: what they send, and where the answer ends.

use std::time::Duration;

use lab_workload::template::Escape;
use lab_workload::{
    AnswerEnd, LengthField, ProtocolRequest, RawBytes, RawRequest, Request, Speech,
};

use super::request::Compiler;
use crate::file::{
    BytesFile, EndFile, NumberedEndFile, RawFile, RequestFile, SendFile, SpeakingFile,
};
use crate::source::Span;
use crate::text_error::TextError;
use crate::units;
use lab_units::parts::{At, Scalar};

/// The largest answer of a stated size: the limit of any answer.
const MAX_ANSWER_BYTES: u64 = 64 << 20;
/// The most bytes before the number that gives an answer's length.
const MAX_HEAD: u64 = 64 << 10;
/// The longest silence that ends an answer.
const MAX_SILENCE: Duration = Duration::from_secs(60);
/// The forms of a length: name, bytes, and whether the lowest byte is first.
const LENGTHS: [(&str, u8, bool); 7] = [
    ("u8", 1, false),
    ("u16be", 2, false),
    ("u16le", 2, true),
    ("u32be", 4, false),
    ("u32le", 4, true),
    ("u64be", 8, false),
    ("u64le", 8, true),
];
const ENDS: &str = "write `line`, `{ bytes: 12 }`, `{ length: u32be }`, `/pattern/`, `close`, `{ silence: 50ms }`, \
                    or `nothing`";
const UDP_ENDS: &str =
    "write `datagram` (one datagram), `{ silence: 50ms }` (several), or `nothing`";

impl Compiler<'_> {
    /// Reads the connections of plain TCP or UDP, which have no settings.
    pub(super) fn plain(
        &mut self,
        name: &At<Scalar>,
        file: Option<&SpeakingFile>,
    ) -> Option<Speech> {
        let text = name.text();
        if file.is_some() {
            let message = "a connection of plain TCP or UDP has no settings";
            let help = format!("write `protocol: {text}`, and send what signs in as a step");
            return self.refuse_here(&name.span, message, &help);
        }
        Some(match text.trim() {
            "udp" => Speech::Udp,
            _ => Speech::Tcp,
        })
    }

    /// Compiles a request of plain TCP or UDP.
    pub(super) fn raw(&mut self, raw: &RawFile, file: &RequestFile) -> Option<Request> {
        let is_udp = matches!(self.speech, Speech::Udp);
        let send = match &raw.send {
            Some(send) => self.sent_bytes(send).map(Some),
            None => Some(None),
        };
        let until = match &raw.read {
            Some(at) => self.answer_end(at, is_udp),
            None if is_udp => Some(AnswerEnd::Datagram),
            None => Some(AnswerEnd::Line),
        };
        let request = send.zip(until);
        let said = request.map(|(send, until)| ProtocolRequest::Raw(RawRequest { send, until }));
        self.request_with_content(said, file)
    }

    fn sent_bytes(&mut self, send: &At<SendFile>) -> Option<RawBytes> {
        let bytes = match &send.value {
            SendFile::Text(text) => {
                return self
                    .template("send", text, Escape::None)
                    .map(RawBytes::Text);
            }
            SendFile::Full(bytes) => &**bytes,
        };
        self.bytes_in_one_form(bytes, &send.span)
    }

    /// Compiles bytes: a text, hexadecimal digits, or a file.
    pub(super) fn bytes_in_one_form(
        &mut self,
        bytes: &BytesFile,
        place: &Span,
    ) -> Option<RawBytes> {
        match bytes {
            BytesFile {
                text: Some(text),
                hex: None,
                file: None,
            } => self
                .template("text", text, Escape::None)
                .map(RawBytes::Text),
            BytesFile {
                text: None,
                hex: Some(hex),
                file: None,
            } => self.hex(hex),
            BytesFile {
                text: None,
                hex: None,
                file: Some(file),
            } => {
                let name = file.text();
                let place = self.files.iter().position(|file| file.name == name);
                place.map(RawBytes::File)
            }
            _ => {
                let help = "write one of `text`, `hex`, and `file`";
                self.refuse_here(place, "a request sends bytes of one form", help)
            }
        }
    }

    /// Compiles hexadecimal digits; those without templates are checked now.
    fn hex(&mut self, hex: &At<Scalar>) -> Option<RawBytes> {
        let template = self.template("hex", hex, Escape::None)?;
        if let Some(text) = template.as_literal() {
            let digits = || text.chars().filter(|c| !c.is_whitespace());
            if digits().any(|c| !c.is_ascii_hexdigit()) || digits().count() % 2 == 1 {
                let message = "`hex` is an even number of hexadecimal digits";
                return self.refuse_here(
                    &hex.span,
                    message,
                    "write two digits for each byte: `00ff`",
                );
            }
        }
        Some(RawBytes::Hex(template))
    }

    fn answer_end(&mut self, end: &At<EndFile>, is_udp: bool) -> Option<AnswerEnd> {
        let compiled = match &end.value {
            EndFile::Word(word) => self.end_in_a_word(word, is_udp)?,
            EndFile::Full(full) => self.numbered_end(full, &end.span)?,
        };
        let fits_udp = matches!(
            compiled,
            AnswerEnd::Datagram | AnswerEnd::Silence(_) | AnswerEnd::Nothing
        );
        match (is_udp, &compiled) {
            (true, _) if !fits_udp => {
                self.refuse_here(&end.span, "answers over UDP are whole datagrams", UDP_ENDS)
            }
            (false, AnswerEnd::Datagram) => {
                self.refuse_here(&end.span, "TCP has no datagrams", ENDS)
            }
            _ => Some(compiled),
        }
    }

    fn end_in_a_word(&mut self, word: &At<Scalar>, is_udp: bool) -> Option<AnswerEnd> {
        let text = word.text();
        let trimmed = text.trim();
        if let Some(pattern) = trimmed.strip_prefix('/').and_then(|t| t.strip_suffix('/')) {
            let end = AnswerEnd::pattern(pattern).map_err(|cause| {
                TextError::new(format!("not a regular expression: {cause}"), 0..text.len())
            });
            return self.note("read", &word.span, &text, end);
        }
        match trimmed {
            "line" => Some(AnswerEnd::Line),
            "close" => Some(AnswerEnd::Close),
            "nothing" => Some(AnswerEnd::Nothing),
            "datagram" => Some(AnswerEnd::Datagram),
            other => {
                let message = format!("`{other}` isn't a known end of an answer");
                let help = if is_udp { UDP_ENDS } else { ENDS };
                self.refuse_here(&word.span, &message, help)
            }
        }
    }

    fn numbered_end(&mut self, end: &NumberedEndFile, span: &Span) -> Option<AnswerEnd> {
        if let (None, Some(at)) = (&end.length, end.at.as_ref().or(end.plus.as_ref())) {
            let help = "write `length: u32be` beside it";
            return self.refuse_here(&at.span, "`at` and `plus` belong to `length`", help);
        }
        match (&end.bytes, &end.length, &end.silence) {
            (Some(bytes), None, None) => {
                let bytes =
                    self.setting("bytes", bytes, |text| units::size(text, MAX_ANSWER_BYTES));
                bytes.map(AnswerEnd::Bytes)
            }
            (None, Some(length), None) => self.length_field(end, length).map(AnswerEnd::Length),
            (None, None, Some(silence)) => {
                let span = self.setting("silence", silence, |text| {
                    units::duration(text, MAX_SILENCE)
                });
                span.map(AnswerEnd::Silence)
            }
            _ => self.refuse_here(span, "an answer has one end", ENDS),
        }
    }

    fn length_field(&mut self, end: &NumberedEndFile, length: &At<Scalar>) -> Option<LengthField> {
        let name = length.text();
        let known = LENGTHS.iter().find(|(known, ..)| *known == name.trim());
        let Some(&(_, width, little)) = known else {
            let names: Vec<String> = LENGTHS
                .iter()
                .map(|(name, ..)| format!("`{name}`"))
                .collect();
            let message = format!("unknown number format `{}`", name.trim());
            let help = format!("write one of {}", names.join(", "));
            return self.refuse_here(&length.span, &message, &help);
        };
        let at = self.optional("at", &end.at, |text| {
            units::whole_number(text, 0..=MAX_HEAD)
        });
        let plus = self.optional("plus", &end.plus, |text| {
            let number = text.trim().parse::<i32>();
            number.map_err(|_| {
                let message = format!("`{}` isn't a whole number", text.trim());
                TextError::new(message, 0..text.len()).help("write a number such as `-4`")
            })
        });
        Some(LengthField {
            at: at?.unwrap_or_default() as u32,
            width,
            little,
            plus: plus?.unwrap_or_default(),
        })
    }
}
