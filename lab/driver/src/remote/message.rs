//! The messages between a generator and its conductor: one JSON text per frame.

use lab_workload::MAX_POPULATIONS;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::channel::{FrameSink, FrameSource, Piped};
use super::content;
use super::error::MessageError;
use crate::assignment::Assignment;
use crate::mix::Mix;
use lab_recorder::report::Report;

/// The version of the messages; a generator with another version refuses.
pub(crate) const PROTOCOL: u32 = 15;

/// From the conductor.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ToGenerator {
    /// The first message, once: the load spec. Setup begins at once.
    Start(Box<Start>),
    /// How far the workers may proceed; later orders add to earlier ones.
    Order(WireOrder),
}

/// The load specs, with the version of their format.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Start {
    protocol: u32,
    /// An [`Assignment`] for each population, read only when the version is known.
    #[serde(default)]
    drives: Option<Box<RawValue>>,
}

impl Start {
    /// Returns the message for these populations.
    pub(crate) fn new(drives: &[Assignment]) -> Result<Self, MessageError> {
        Ok(Self {
            protocol: PROTOCOL,
            drives: Some(serde_json::value::to_raw_value(drives)?),
        })
    }

    /// Returns the load, if the message has this version.
    pub(crate) fn mix(&self) -> Result<Mix, MessageError> {
        if self.protocol != PROTOCOL {
            return Err(MessageError::Nonsense(format!(
                "version {} of the messages, and this program knows {PROTOCOL}",
                self.protocol
            )));
        }
        let text = self.drives.as_ref().map_or("null", |drives| drives.get());
        let drives: Vec<Box<RawValue>> = serde_json::from_str(text)?;
        if drives.len() > MAX_POPULATIONS {
            let text = format!("more than {MAX_POPULATIONS} populations");
            return Err(MessageError::Nonsense(text));
        }
        let read = |drive: Box<RawValue>| serde_json::from_str(drive.get());
        let drives: Vec<Assignment> = drives.into_iter().map(read).collect::<Result<_, _>>()?;
        if let Some(nonsense) = drives.iter().find_map(Assignment::nonsense) {
            return Err(MessageError::Nonsense(nonsense));
        }
        let mut drives = drives.into_iter();
        let Some(first) = drives.next() else {
            return Err(MessageError::Nonsense("nothing to drive".to_owned()));
        };
        Ok(drives.fold(Mix::from(first), Mix::and))
    }
}

/// The wire form of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WireOrder {
    pub(crate) setup_step: usize,
    /// The trial's 0 in ns of the machine's monotonic clock.
    pub(crate) zero_ns: Option<u64>,
    pub(crate) stop: bool,
}

/// From the generator.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FromGenerator {
    /// The workers have started; their kernel thread ids.
    Ready { threads: Vec<i32> },
    /// The trial's 0 is known, and all begin then.
    Armed,
    /// The generator can't begin, or its workers failed.
    Failed { detail: String },
    /// A report of a worker, by its number in this generator.
    Report { worker: usize, report: Report },
}

/// Sends a message.
pub(crate) fn send_message(
    to: &mut (impl FrameSink + ?Sized),
    message: &impl Serialize,
) -> Result<(), MessageError> {
    to.send(&serde_json::to_vec(message)?)
}

/// Waits for a message; `None` when the peer has ended.
pub(crate) fn receive_message<M: DeserializeOwned>(
    from: &mut (impl FrameSource + ?Sized),
) -> Result<Option<M>, MessageError> {
    match from.receive()? {
        Some(frame) => Ok(Some(serde_json::from_slice(&frame)?)),
        None => Ok(None),
    }
}

/// Reads all messages of a generator in these bytes, histograms too, and returns their number: for tests with arbitrary
/// bytes.
///
/// # Errors
/// The defect of the first unreadable message.
pub fn check_from_generator(bytes: &[u8]) -> Result<usize, MessageError> {
    let (mut from, mut count) = (Piped(bytes), 0);
    while receive_message::<FromGenerator>(&mut from)?.is_some() {
        count += 1;
    }
    Ok(count)
}

/// The same for the messages to a generator.
///
/// # Errors
/// The defect of the first unreadable message.
pub fn check_to_generator(bytes: &[u8]) -> Result<usize, MessageError> {
    let (mut from, mut count) = (Piped(bytes), 0);
    while let Some(message) = receive_message(&mut from)? {
        if let ToGenerator::Start(start) = message {
            let mut mix = start.mix()?;
            content::receive(&mut mix, &mut from)?;
        }
        count += 1;
    }
    Ok(count)
}
