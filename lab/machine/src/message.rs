//! Messages between the conductor and an agent that has a system: orders one way, reports the other, one answer for
//! each order. JSON follows a byte that distinguishes it from a piece of the system's output.

use std::collections::BTreeMap;

use lab_archive::{StartingState, SystemHost};
use lab_study::{CommandSpec, HostSpec, KernelSetting};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::machine::Started;
use crate::slots::CoreSharing;

/// First byte of a message in JSON.
const JSON: u8 = 0;
/// First byte of a piece of output.
const BYTES: u8 = 1;
/// Largest piece of output.
pub(crate) const PIECE: u64 = 256 << 10;

/// Largest piece of the list of users, and largest list: a million users with some hundred bytes each.
pub(crate) const USERS_PIECE: usize = 256 << 10;
pub(crate) const MOST_USERS: u64 = 1 << 30;

/// Largest order: it has the texts of one system's files.
pub(crate) const MOST_ORDER: usize = 16 << 20;
/// Largest report, except the answer to a start.
pub(crate) const MOST_REPORT: usize = 1 << 20;
/// Largest answer to a start: it has texts of that order.
pub(crate) const MOST_STARTED: usize = MOST_ORDER + MOST_REPORT;

/// A trial's system on a remote machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setup {
    /// The trial's number, for the name of its folder.
    pub trial: u32,
    /// The program, without values filled in.
    pub spec: CommandSpec,
    /// The settings of its host.
    pub host: HostSpec,
    /// True if it speaks TLS.
    pub secure: bool,
    /// How it shares cores with the other system of a duet.
    #[serde(default, rename = "beside")]
    pub core_sharing: Option<CoreSharing>,
}

/// When counters are read: at regular times from the trial's 0, and once more just before the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Counting {
    /// The trial's 0 in ns of the reader's monotonic clock.
    pub(crate) zero: u64,
    pub(crate) every_ns: u64,
    pub(crate) end_ns: u64,
}

/// An order to an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Order {
    /// Report what it refuses of a system.
    Check { setup: Box<Setup> },
    /// Start a system, and answer when it accepts requests.
    Start { setup: Box<Setup> },
    /// Store a piece of the list of users, at offset `after`.
    Users { after: u64, piece: String },
    /// Run a command of the preparation: the one at index `at`.
    Prepare { at: usize },
    /// Watch a server that already runs: its process, or the one that listens on its port.
    Watch { port: u16, pid: Option<u32> },
    /// Report the state at the start of the trial.
    State { touched: Vec<KernelSetting> },
    /// Start counting.
    Count(Counting),
    /// Start to observe the system's environment.
    LookAround,
    /// Report the environment since then.
    LookedAround,
    /// Stop the system.
    Stop,
    /// Send a piece of its output.
    Output { from: u64 },
    /// Restore the machine.
    Close,
}

/// A report of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Report {
    /// What it refuses, one sentence each.
    Checked { problems: Vec<String> },
    /// The system accepts requests; the kernel settings in force, and the facts of the file system that was made.
    Started {
        started: Box<Started>,
        kernel: BTreeMap<String, String>,
        storage: Vec<(String, String)>,
    },
    /// Bytes stored of the list of users.
    HasUsers { bytes: u64 },
    /// The command succeeded.
    Prepared,
    /// The process that it watches; `None` if there is none that it may watch.
    Watched { pid: Option<u32> },
    /// The state of the machine.
    State(Box<StartingState>),
    /// The counters that follow, and the cores of its machine.
    Counts { columns: Vec<String>, cores: u32 },
    /// Counters at `at` ns of the reader's monotonic clock.
    Row { at: u64, values: Vec<Option<f64>> },
    /// It observes the system's environment.
    LooksAround,
    /// The environment.
    LookedAround(Box<SystemHost>),
    /// The system has ended; why, in words. Not an answer to an order.
    Ended { why: String },
    /// The system was stopped.
    Stopped { note: Option<String> },
    /// The machine is restored.
    Closed,
    /// The order failed since the system failed; in words.
    Failed { why: String },
    /// The order failed since the machine can't do it; in words.
    Refused { why: String },
}

/// Why a message can't be read.
#[derive(Debug, thiserror::Error)]
#[error("a message of an agent's system is not understood: {0}")]
pub struct Unreadable(String);

/// Encodes an order or report.
pub(crate) fn encode(message: &impl Serialize) -> Vec<u8> {
    let mut bytes = vec![JSON];
    serde_json::to_writer(&mut bytes, message).expect("these messages are JSON");
    bytes
}

/// Encodes a piece of output.
pub(crate) fn encode_piece(piece: &[u8]) -> Vec<u8> {
    [&[BYTES], piece].concat()
}

/// A report, or a piece of output.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Received {
    Report(Report),
    Piece(Vec<u8>),
}

fn decode<M: DeserializeOwned>(bytes: &[u8]) -> Result<M, Unreadable> {
    match bytes.split_first() {
        Some((&JSON, text)) => {
            serde_json::from_slice(text).map_err(|error| Unreadable(error.to_string()))
        }
        _ => Err(Unreadable("it is no JSON".to_owned())),
    }
}

pub(crate) fn decode_order(bytes: &[u8]) -> Result<Order, Unreadable> {
    match bytes.len() {
        0..=MOST_ORDER => decode(bytes),
        _ => Err(Unreadable(format!("an order has over {MOST_ORDER} bytes"))),
    }
}

/// Decodes a report of at most `most` bytes.
pub(crate) fn decode_received(bytes: &[u8], most: usize) -> Result<Received, Unreadable> {
    if bytes.len() > most {
        return Err(Unreadable(format!("a report has over {most} bytes")));
    }
    match bytes.split_first() {
        Some((&BYTES, piece)) if piece.len() as u64 <= PIECE => Ok(Received::Piece(piece.to_vec())),
        Some((&BYTES, _)) => Err(Unreadable("a piece of output is too long".to_owned())),
        _ => decode(bytes).map(Received::Report),
    }
}

/// Decodes bytes as either kind of message, for tests with arbitrary bytes.
///
/// # Errors
/// Why they are no order.
pub fn check(bytes: &[u8]) -> Result<(), Unreadable> {
    let _heard = decode_received(bytes, MOST_REPORT);
    let order = decode_order(bytes)?;
    let again: Order = decode(&encode(&order))?;
    assert_eq!(again, order, "an order comes back as it was");
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pieces_and_rows_come_back(
            piece in proptest::collection::vec(any::<u8>(), 0..300),
            at in any::<u64>(),
            values in proptest::collection::vec(proptest::option::of((-1_000_000..1_000_000).prop_map(f64::from)), 0..50),
        ) {
            let heard = decode_received(&encode_piece(&piece), MOST_REPORT).unwrap();
            prop_assert_eq!(heard, Received::Piece(piece));
            let row = Report::Row { at, values };
            let heard = decode_received(&encode(&row), MOST_REPORT).unwrap();
            prop_assert_eq!(heard, Received::Report(row));
        }
    }

    #[test]
    fn what_is_unknown_is_refused() {
        assert!(
            decode::<Order>(&[&[JSON], &br#"{"output":{"from":1,"to":2}}"#[..]].concat()).is_err()
        );
        assert!(decode::<Order>(&[&[JSON], &br#""shell""#[..]].concat()).is_err());
        let piece = encode_piece(&vec![0; PIECE as usize + 1]);
        assert!(decode_received(&piece, MOST_REPORT).is_err());
        let report = encode(&Report::Stopped {
            note: Some("x".repeat(MOST_REPORT)),
        });
        assert!(decode_received(&report, MOST_REPORT).is_err());
        assert!(decode_received(&report, MOST_STARTED).is_ok());
        let long = format!("\"stop\"{}", " ".repeat(MOST_ORDER));
        let said = decode_order(&[&[JSON], long.as_bytes()].concat()).unwrap_err();
        assert!(said.to_string().contains("over 16777216 bytes"), "{said}");
    }
}
