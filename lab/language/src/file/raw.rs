//! The raw form of requests of plain TCP and UDP.

use schemars::JsonSchema;
use serde::Serialize;

use super::shapes::{Count, Time};
use crate::error::Problems;
use crate::node::{Node, Value};
use crate::source::Span;
use lab_units::decode::{Container, Decode, Fields};
use lab_units::parts::{At, Scalar};

/// A request of plain TCP or UDP.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub(crate) struct RawFile {
    /// For TCP and UDP, in place of `request`: a text, or `{ hex: 0001ff }`, or `{ file: hello.bin }`. Without it the
    /// request only reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) send: Option<At<SendFile>>,
    /// For TCP and UDP: the end of the answer, which belongs to it: `line`, `{ bytes: 12 }`, `{ length: u32be }` (a
    /// number before the rest), `/pattern/`, `close` (by the server), `{ silence: 50ms }`, `datagram`, or `nothing` if
    /// there is no answer. Default: `line`; for UDP, `datagram`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) read: Option<At<EndFile>>,
}

/// Bytes to send.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum SendFile {
    /// A text.
    #[schemars(with = "String")]
    Text(At<Scalar>),
    /// Bytes of another form.
    Full(Box<BytesFile>),
}

/// Bytes in one of several forms.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct BytesFile {
    /// A text. It may name variables: `{{ name }}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) text: Option<At<Scalar>>,
    /// Hexadecimal digits, two for each byte; spaces don't count. They may contain templates: `00 {{ id }}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) hex: Option<At<Scalar>>,
    /// A file with the bytes, relative to the workload's folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) file: Option<At<Scalar>>,
}

/// The end of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum EndFile {
    /// A word or a pattern.
    #[schemars(with = "String")]
    Word(At<Scalar>),
    /// An end with a number.
    Full(Box<NumberedEndFile>),
}

/// The end of an answer by a number: one of `bytes`, `length`, and `silence`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct NumberedEndFile {
    /// The size of the answer, such as `12` or `4 KiB`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes: Option<At<Scalar>>,
    /// The form of the number in the answer that gives the count of bytes after it: `u8`, `u16be`, `u16le`, `u32be`,
    /// `u32le`, `u64be`, `u64le`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) length: Option<At<Scalar>>,
    /// For `length`: the bytes before the number. Default: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Count>")]
    pub(crate) at: Option<At<Scalar>>,
    /// For `length`: what to add to the number, such as `-4` if it counts its own four bytes. Default: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<i32>")]
    pub(crate) plus: Option<At<Scalar>>,
    /// The time without further bytes that ends the answer, such as `50ms`. It is part of the response time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Time>")]
    pub(crate) silence: Option<At<Scalar>>,
}

impl BytesFile {
    pub(crate) fn from_fields(fields: &mut Fields, problems: &mut Problems) -> Self {
        Self {
            text: fields.optional("text", problems),
            hex: fields.optional("hex", problems),
            file: fields.optional("file", problems),
        }
    }
}

impl RawFile {
    pub(crate) fn from_fields(fields: &mut Fields, problems: &mut Problems) -> Self {
        Self {
            send: fields.optional("send", problems),
            read: fields.optional("read", problems),
        }
    }

    /// Returns its first key and that key's place; `None` if it has none.
    pub(crate) fn place(&self) -> Option<(&'static str, &Span)> {
        let send = self.send.as_ref().map(|at| ("send", &at.span));
        send.or(self.read.as_ref().map(|at| ("read", &at.span)))
    }

    /// Returns the file that it sends.
    pub(crate) fn file(&self) -> Option<&At<Scalar>> {
        match &self.send.as_ref()?.value {
            SendFile::Full(bytes) => bytes.file.as_ref(),
            SendFile::Text(_) => None,
        }
    }
}

impl Container for SendFile {}

impl Decode for SendFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let Value::Map(_) = node.value else {
            return At::decode(node, problems).map(Self::Text);
        };
        let mut fields = Fields::of(node, "bytes to send", problems)?;
        let bytes = BytesFile::from_fields(&mut fields, problems);
        fields.finish(problems);
        Some(Self::Full(Box::new(bytes)))
    }
}

impl Container for EndFile {}

impl Decode for EndFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let Value::Map(_) = node.value else {
            return At::decode(node, problems).map(Self::Word);
        };
        let mut fields = Fields::of(node, "the end of an answer", problems)?;
        let end = NumberedEndFile {
            bytes: fields.optional("bytes", problems),
            length: fields.optional("length", problems),
            at: fields.optional("at", problems),
            plus: fields.optional("plus", problems),
            silence: fields.optional("silence", problems),
        };
        fields.finish(problems);
        Some(Self::Full(Box::new(end)))
    }
}
