//! The document: fields and attachments, and its stored form.

use groupware_ids::ContentHash;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{DocumentError, Fields, FileName, ItemName};

/// The version of the stored form. A reader rejects unknown versions.
const FORMAT: u8 = 1;

/// A document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// The time of its creation, seconds since 1970.
    #[serde(rename = "c")]
    pub created: i64,
    /// The time of the last change of it or its attachments.
    #[serde(rename = "m")]
    pub modified: i64,
    /// The user who added it, if not the owner.
    #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// Its fields.
    #[serde(rename = "f")]
    pub fields: Fields,
    /// Its attachments, in the order of arrival.
    #[serde(rename = "a", default)]
    pub attachments: Vec<Attachment>,
}

/// An attached file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// The item that it belongs to.
    #[serde(rename = "i")]
    pub item: String,
    /// Its media type, according to its sender.
    #[serde(rename = "n")]
    pub name: String,
    /// Its media type, according to its sender.
    #[serde(rename = "t")]
    pub media_type: String,
    /// Its length.
    #[serde(rename = "s")]
    pub bytes: u64,
    /// The hash of its content.
    #[serde(
        rename = "h",
        serialize_with = "write_hash",
        deserialize_with = "read_hash"
    )]
    pub hash: ContentHash,
    /// The time of its attachment.
    #[serde(rename = "m")]
    pub modified: i64,
}

impl Attachment {
    /// The entity tag of its content.
    pub fn tag(&self) -> String {
        format!("\"{}\"", self.hash)
    }
}

fn write_hash<S: Serializer>(hash: &ContentHash, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(hash)
}

fn read_hash<'de, D: Deserializer<'de>>(from: D) -> Result<ContentHash, D::Error> {
    let text = String::deserialize(from)?;
    ContentHash::parse(&text).ok_or_else(|| serde::de::Error::custom("not a hash"))
}

impl Document {
    /// The stored form: a version byte, then JSON with short names.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(512);
        bytes.push(FORMAT);
        serde_json::to_writer(&mut bytes, self).expect("a document always serialises to memory");
        bytes
    }

    /// Parses the stored form.
    ///
    /// # Errors
    /// [`DocumentError::Unreadable`] if it has another version or is damaged.
    pub(crate) fn decode(key: &[u8], bytes: &[u8]) -> Result<Self, DocumentError> {
        match bytes.split_first() {
            Some((&FORMAT, json)) => {
                serde_json::from_slice(json).map_err(|error| DocumentError::corrupt(key, error))
            }
            Some((other, _)) => Err(DocumentError::corrupt(
                key,
                format!("format {other}, expected {FORMAT}"),
            )),
            None => Err(DocumentError::corrupt(key, "empty")),
        }
    }

    /// The bytes that count against the owner's quota: fields and attachments.
    pub(crate) fn bytes(&self) -> u64 {
        let attached = self.attachments.iter().map(|attachment| attachment.bytes);
        self.fields.bytes() + attached.sum::<u64>()
    }

    /// Returns the index of an attachment.
    pub(crate) fn position(&self, item: &ItemName, name: &FileName) -> Option<usize> {
        self.attachments
            .iter()
            .position(|known| known.item == item.as_str() && known.name == name.as_str())
    }
}
