//! Messages between agents and conductors, apart from generator frames: greetings, questions, and answers as JSON after
//! a version byte; packets after a header of fixed length.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::name::Name;

/// The version of these messages.
pub const VERSION: u8 = 10;
/// Maximum length of a greeting, question, or answer.
const MOST_TEXT: usize = 64 << 10;
/// Maximum length of a packet's content: a NATS server accepts 1 MiB by default.
pub(crate) const MOST_CONTENT: usize = 512 << 10;
/// Bytes before the content: version, kind, epoch, trial, number.
const HEAD: usize = 1 + 1 + 8 + 4 + 8;

/// Why an agent has no system.
pub(crate) const NO_SYSTEMS: &str =
    "has no systems: its owner has to start it with `plimsoll agent --allow FILE`";

/// Why a message is unreadable.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// The message has another version.
    #[error("a message of version {0}, and this program knows {VERSION}")]
    Version(u8),
    /// The message is too long or too short.
    #[error("a message of {0} bytes is none")]
    Length(usize),
    /// The message is not a known one.
    #[error("a message is not understood: {0}")]
    Unknown(String),
}

/// An agent's greeting. Later versions may have more fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Its name.
    pub name: Name,
    /// The first and the last supported version.
    pub versions: (u8, u8),
    /// Its program's version; all agents of a run share one.
    pub program: String,
    /// Random id of this start of the agent.
    #[serde(default)]
    pub instance: String,
    /// The kernel's random id of its machine's boot.
    #[serde(default)]
    pub boot_id: String,
    /// Its machine's name.
    #[serde(default)]
    pub host: String,
    /// Cores that its generators are pinned to, one worker each.
    #[serde(default)]
    pub cores: Vec<usize>,
    /// Its machine's memory.
    #[serde(default)]
    pub memory_mb: u64,
    /// Weight of its part of the load, as set by its owner; by default derived from its cores.
    #[serde(default)]
    pub weight: Option<u32>,
    /// Requests per second that its cores drive together, if measured.
    #[serde(default)]
    pub speed: Option<u32>,
    /// Whether its owner allows systems of runs on its machine.
    #[serde(default)]
    pub systems: bool,
    /// Labels set by its owner.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Current lease holder.
    #[serde(default)]
    pub holder: Option<String>,
}

/// A question to an agent. A repeated question receives the same answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Ask {
    /// Lease the agent for this long, unless renewed.
    Lease {
        conductor: Name,
        run: Name,
        ttl_ms: u64,
    },
    /// Renew the lease.
    Renew { epoch: u64, ttl_ms: u64 },
    /// Release the agent.
    Release { epoch: u64 },
    /// Open a trial: its packets follow.
    Open { epoch: u64, trial: u32 },
    /// Run the system of a trial: its packets follow.
    System { epoch: u64, trial: u32 },
    /// Drop a trial.
    Drop { epoch: u64, trial: u32 },
    /// End the agent's program; a leased agent refuses, unless `force`.
    Stop { force: bool },
}

/// A question and its recipient. Two programs may share a name for a while: a stalled one and its replacement, or two
/// with one token. Programs that are not addressed do not answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Question {
    /// Instance from its greeting; if empty, any program with the name.
    pub(crate) instance: String,
    pub(crate) ask: Ask,
}

impl Ask {
    /// Addresses the program that sent this greeting.
    pub(crate) fn for_one(self, hello: &Hello) -> Question {
        Question {
            instance: hello.instance.clone(),
            ask: self,
        }
    }

    /// Addresses any program with the name.
    pub(crate) fn for_any(self) -> Question {
        Question {
            instance: String::new(),
            ask: self,
        }
    }
}

/// An agent's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Answer {
    /// Leased to the run under this number, which no earlier lease had.
    Granted { epoch: u64 },
    /// Leased to another run.
    Held { holder: String, ms_left: u64 },
    /// The request was executed.
    Done,
    /// The request was refused.
    Refused { why: String },
}

/// A clock's answer: when the question arrived and the answer left, ns of the monotonic clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Read {
    pub(crate) came: u64,
    pub(crate) went: u64,
    pub(crate) boot_id: String,
    pub(crate) instance: String,
}

/// An agent's report, twice a second while it drives.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Beat {
    /// CPU time of each worker and its wait for a core, ns; the wait only if the kernel reports it.
    pub(crate) workers: Vec<(u64, Option<u64>)>,
    /// Resident memory of the agent.
    pub(crate) rss_kb: u64,
}

/// Encodes a message for the wire.
pub(crate) fn encode(message: &impl Serialize) -> Vec<u8> {
    let mut bytes = vec![VERSION];
    serde_json::to_writer(&mut bytes, message).expect("these messages are JSON");
    bytes
}

/// Reads a message.
pub(crate) fn decode<M: DeserializeOwned>(bytes: &[u8]) -> Result<M, Unreadable> {
    let text = versioned(bytes)?;
    if text.len() > MOST_TEXT {
        return Err(Unreadable::Length(bytes.len()));
    }
    serde_json::from_slice(text).map_err(|error| Unreadable::Unknown(error.to_string()))
}

/// Reads a greeting of any version.
pub(crate) fn decode_hello(bytes: &[u8]) -> Result<Hello, Unreadable> {
    match bytes.split_first() {
        Some((_, text)) if text.len() <= MOST_TEXT => {
            serde_json::from_slice(text).map_err(|error| Unreadable::Unknown(error.to_string()))
        }
        _ => Err(Unreadable::Length(bytes.len())),
    }
}

fn versioned(bytes: &[u8]) -> Result<&[u8], Unreadable> {
    match bytes.split_first() {
        Some((&VERSION, rest)) => Ok(rest),
        Some((other, _)) => Err(Unreadable::Version(*other)),
        None => Err(Unreadable::Length(0)),
    }
}

/// A packet of a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Packet {
    /// The lease under which it is sent.
    pub(crate) epoch: u64,
    /// The trial's number in the lease.
    pub(crate) trial: u32,
    pub(crate) content: Content,
}

/// Content of a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Content {
    /// A part of a frame.
    Part { number: u64, bytes: Vec<u8> },
    /// The last part of a frame.
    Last { number: u64, bytes: Vec<u8> },
    /// End of the frames.
    End { number: u64 },
    /// Acknowledges all packets below this number.
    Below(u64),
    /// See [`Beat`], in JSON.
    Beat(Vec<u8>),
    /// The trial is over for the sender, with the reason.
    Gone(Vec<u8>),
}

impl Packet {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let (kind, number, bytes): (u8, u64, &[u8]) = match &self.content {
            Content::Part { number, bytes } => (0, *number, bytes),
            Content::Last { number, bytes } => (1, *number, bytes),
            Content::End { number } => (2, *number, &[]),
            Content::Below(number) => (3, *number, &[]),
            Content::Beat(bytes) => (4, 0, bytes),
            Content::Gone(bytes) => (5, 0, bytes),
        };
        let mut encoded = Vec::with_capacity(HEAD + bytes.len());
        encoded.extend([VERSION, kind]);
        encoded.extend(self.epoch.to_be_bytes());
        encoded.extend(self.trial.to_be_bytes());
        encoded.extend(number.to_be_bytes());
        encoded.extend(bytes);
        encoded
    }

    pub(crate) fn decode(encoded: &[u8]) -> Result<Self, Unreadable> {
        versioned(encoded)?;
        let length = Unreadable::Length(encoded.len());
        if encoded.len() > HEAD + MOST_CONTENT {
            return Err(length);
        }
        let Some((head, bytes)) = encoded.split_at_checked(HEAD) else {
            return Err(length);
        };
        let number = |at: usize| head[at..at + 8].try_into().map(u64::from_be_bytes);
        let (Ok(epoch), Ok(trial), Ok(number)) = (number(2), head[10..14].try_into(), number(14))
        else {
            return Err(length);
        };
        let bytes = bytes.to_vec();
        let content = match head[1] {
            0 => Content::Part { number, bytes },
            1 => Content::Last { number, bytes },
            2 if bytes.is_empty() => Content::End { number },
            3 if bytes.is_empty() => Content::Below(number),
            4 if number == 0 => Content::Beat(bytes),
            5 if number == 0 => Content::Gone(bytes),
            kind => return Err(Unreadable::Unknown(format!("a packet of kind {kind}"))),
        };
        Ok(Self {
            epoch,
            trial: u32::from_be_bytes(trial),
            content,
        })
    }
}

/// Reads bytes as each message type: for fuzz tests.
///
/// # Errors
/// Why the bytes are not a packet.
pub fn check(bytes: &[u8]) -> Result<(), Unreadable> {
    let _hello = decode_hello(bytes);
    let _asked = decode::<Question>(bytes);
    let _answer = decode::<Answer>(bytes);
    let _read = decode::<Read>(bytes);
    let _beat = decode::<Beat>(bytes);
    let packet = Packet::decode(bytes)?;
    assert_eq!(packet.encode(), bytes, "a packet has one form");
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_sent_is_what_is_read() {
        let ask = Ask::Lease {
            conductor: "me".parse().unwrap(),
            run: "r1".parse().unwrap(),
            ttl_ms: 10_000,
        };
        assert_eq!(decode::<Ask>(&encode(&ask)).unwrap(), ask);
        // Version 3, whose system orders differ.
        let of_three = [&[3], &encode(&ask)[1..]].concat();
        assert!(matches!(
            decode::<Ask>(&of_three),
            Err(Unreadable::Version(3))
        ));
        let more = br#"{"renew":{"epoch":1,"ttl_ms":2,"more":3}}"#;
        assert!(decode::<Ask>(&[&[VERSION], &more[..]].concat()).is_err());
    }

    #[test]
    fn a_greeting_of_a_later_version_is_heard() {
        let text = br#"{"name":"a","versions":[5,6],"program":"9.0.0","news":true}"#;
        let hello = decode_hello(&[&[6], &text[..]].concat()).unwrap();
        assert_eq!(hello.versions, (5, 6));
    }

    proptest! {
        #[test]
        fn packets_come_back_as_they_were(
            (epoch, trial, number) in (any::<u64>(), any::<u32>(), any::<u64>()),
            kind in 0..6u8,
            bytes in proptest::collection::vec(any::<u8>(), 0..64),
        ) {
            let content = match kind {
                0 => Content::Part { number, bytes },
                1 => Content::Last { number, bytes },
                2 => Content::End { number },
                3 => Content::Below(number),
                4 => Content::Beat(bytes),
                _ => Content::Gone(bytes),
            };
            let packet = Packet { epoch, trial, content };
            prop_assert_eq!(Packet::decode(&packet.encode()).unwrap(), packet);
        }
    }
}
