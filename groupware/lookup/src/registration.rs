//! A registration, and its stored form.

use bytes::Bytes;

use crate::record::Record;
use crate::{Id, Lease, LookupError};

/// The first byte of every stored form. Version 1 had no size of the content.
const VERSION: u8 = 2;

/// The last change of a registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It was created.
    Registered,
    /// Its lease was renewed.
    Renewed,
}

impl State {
    /// The form in a record.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Registered => "registered",
            Self::Renewed => "renewed",
        }
    }
}

/// The properties of a registration besides its content: small, and rewritten by a renewal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    /// Identifies this content of the registration; a replacement gets a new one.
    pub(crate) version: u64,
    pub(crate) lease: Lease,
    pub(crate) state: State,
    /// The record's type.
    pub(crate) kind: String,
    /// The user who registered it; any client may change a registration without an owner.
    pub(crate) owner: Option<String>,
    /// The fingerprint of a record that may not be registered twice.
    pub(crate) fingerprint: Option<[u8; 16]>,
    /// Bytes of the content; 0 if an earlier version stored it.
    pub(crate) bytes: u32,
}

/// The content of a registration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Content {
    /// The record, or the equivalent record for a registration of the XML protocol.
    pub(crate) record: Record,
    /// The content of a registration by the XML protocol.
    pub(crate) xml: Option<Xml>,
}

/// A registration of the XML protocol.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Xml {
    /// The service's subject, as standalone XML.
    pub(crate) subject: String,
    /// The blocks of metadata, as standalone XML.
    pub(crate) blocks: Vec<String>,
}

/// A complete registration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Registration {
    pub(crate) id: Id,
    pub(crate) head: Head,
    pub(crate) content: Content,
}

impl Registration {
    /// The path of the record.
    pub(crate) fn uri(&self) -> String {
        uri(&self.head.kind, self.id)
    }
}

pub(crate) fn uri(kind: &str, id: Id) -> String {
    format!("lookup/{kind}/{id}")
}

impl Head {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.push(VERSION);
        out.extend(self.version.to_le_bytes());
        out.extend(self.lease.ttl_s.to_le_bytes());
        out.extend(self.lease.expires.to_le_bytes());
        out.push(match self.state {
            State::Registered => 0,
            State::Renewed => 1,
        });
        put_text(out, &self.kind);
        out.push(u8::from(self.owner.is_some()));
        put_text(out, self.owner.as_deref().unwrap_or_default());
        out.push(u8::from(self.fingerprint.is_some()));
        out.extend(self.fingerprint.unwrap_or_default());
        out.extend(self.bytes.to_le_bytes());
    }

    pub(crate) fn to_bytes(&self) -> Bytes {
        let mut out = Vec::with_capacity(96);
        self.encode(&mut out);
        out.into()
    }

    pub(crate) fn decode(input: &mut &[u8]) -> Result<Self, LookupError> {
        let [form] = take(input)?;
        if !(1..=VERSION).contains(&form) {
            return Err(LookupError::Corrupt);
        }
        let version = u64::from_le_bytes(take(input)?);
        let ttl_s = i64::from_le_bytes(take(input)?);
        let expires = i64::from_le_bytes(take(input)?);
        let state = match take::<1>(input)? {
            [0] => State::Registered,
            [1] => State::Renewed,
            _ => return Err(LookupError::Corrupt),
        };
        let kind = take_text(input)?.to_owned();
        let has_owner = take::<1>(input)? != [0];
        let owner = take_text(input)?.to_owned();
        let has_fingerprint = take::<1>(input)? != [0];
        let fingerprint = take(input)?;
        let bytes = match form {
            1 => [0; 4],
            _ => take(input)?,
        };
        Ok(Self {
            version,
            lease: Lease { ttl_s, expires },
            state,
            kind,
            owner: has_owner.then_some(owner),
            fingerprint: has_fingerprint.then_some(fingerprint),
            bytes: u32::from_le_bytes(bytes),
        })
    }
}

impl Content {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put_count(out, self.record.fields.len());
        for (key, values) in &self.record.fields {
            put_text(out, key);
            put_count(out, values.len());
            values.iter().for_each(|value| put_text(out, value));
        }
        out.push(u8::from(self.xml.is_some()));
        if let Some(xml) = &self.xml {
            put_text(out, &xml.subject);
            put_count(out, xml.blocks.len());
            xml.blocks.iter().for_each(|block| put_text(out, block));
        }
    }

    pub(crate) fn to_bytes(&self) -> Bytes {
        let mut out = Vec::with_capacity(self.size());
        self.encode(&mut out);
        out.into()
    }

    /// The size of the stored form in bytes.
    pub(crate) fn size(&self) -> usize {
        let texts = |texts: &[String]| texts.iter().map(|text| text.len() + 4).sum::<usize>() + 4;
        let fields = &self.record.fields;
        let record: usize = fields
            .iter()
            .map(|(key, all)| key.len() + 4 + texts(all))
            .sum();
        let xml = self.xml.as_ref();
        record + 5 + xml.map_or(0, |xml| xml.subject.len() + 4 + texts(&xml.blocks))
    }

    /// Parses the record alone.
    pub(crate) fn decode_record(input: &mut &[u8]) -> Result<Record, LookupError> {
        let mut record = Record::default();
        for _ in 0..take_count(input)? {
            let key = take_text(input)?.to_owned();
            let values = take_texts(input)?;
            record.fields.insert(key, values);
        }
        Ok(record)
    }

    pub(crate) fn decode(input: &mut &[u8]) -> Result<Self, LookupError> {
        let record = Self::decode_record(input)?;
        let xml = match take::<1>(input)? {
            [0] => None,
            _ => Some(Xml {
                subject: take_text(input)?.to_owned(),
                blocks: take_texts(input)?,
            }),
        };
        Ok(Self { record, xml })
    }
}

fn put_count(out: &mut Vec<u8>, count: usize) {
    let count = u32::try_from(count).expect("limits keep every count and text far below 4 GB");
    out.extend(count.to_le_bytes());
}

pub(crate) fn put_text(out: &mut Vec<u8>, text: &str) {
    put_count(out, text.len());
    out.extend(text.as_bytes());
}

pub(crate) fn take<const N: usize>(input: &mut &[u8]) -> Result<[u8; N], LookupError> {
    let (taken, rest) = input.split_first_chunk::<N>().ok_or(LookupError::Corrupt)?;
    *input = rest;
    Ok(*taken)
}

fn take_count(input: &mut &[u8]) -> Result<usize, LookupError> {
    Ok(u32::from_le_bytes(take(input)?) as usize)
}

fn take_texts(input: &mut &[u8]) -> Result<Vec<String>, LookupError> {
    let count = take_count(input)?;
    // Each text has at least a length field.
    let mut texts = Vec::with_capacity(count.min(input.len() / 4));
    for _ in 0..count {
        texts.push(take_text(input)?.to_owned());
    }
    Ok(texts)
}

fn take_text<'a>(input: &mut &'a [u8]) -> Result<&'a str, LookupError> {
    let length = take_count(input)?;
    let (text, rest) = input.split_at_checked(length).ok_or(LookupError::Corrupt)?;
    *input = rest;
    std::str::from_utf8(text).map_err(|_| LookupError::Corrupt)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn contents() -> impl Strategy<Value = Content> {
        let values = prop::collection::vec(".{0,9}", 0..5);
        let fields = prop::collection::btree_map(".{1,9}", values.clone(), 0..5);
        let xml = prop::option::of((".{0,9}", values));
        (fields, xml).prop_map(|(fields, xml)| Content {
            record: Record { fields },
            xml: xml.map(|(subject, blocks)| Xml { subject, blocks }),
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(content in contents(), version: u64, expires: i64,
                                   owner in prop::option::of(".{0,9}"), print: Option<[u8; 16]>,
                                   size: u32) {
            let head = Head {
                version,
                lease: Lease { ttl_s: 7, expires },
                state: State::Renewed,
                kind: "service".into(),
                owner,
                fingerprint: print,
                bytes: size,
            };
            let mut bytes = head.to_bytes().to_vec();
            bytes.extend(content.to_bytes());
            prop_assert_eq!(content.to_bytes().len(), content.size());
            let mut input = &bytes[..];
            prop_assert_eq!(&Head::decode(&mut input).unwrap(), &head);
            // The form of an earlier version.
            let mut first = head.to_bytes().to_vec();
            first[0] = 1;
            first.truncate(first.len() - 4);
            let before = Head { bytes: 0, ..head };
            prop_assert_eq!(Head::decode(&mut &first[..]).unwrap(), before);
            prop_assert_eq!(Content::decode(&mut input).unwrap(), content);
            prop_assert!(input.is_empty());
            for cut in 0..bytes.len() {
                let mut input = &bytes[..cut];
                let whole = Head::decode(&mut input).and_then(|_| Content::decode(&mut input));
                prop_assert!(whole.is_err());
            }
        }
    }
}
