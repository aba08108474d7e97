//! What a generator and its conductor say to each other: a JSON text a frame.

use lab_workload::MAX_POPULATIONS;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::channel::{FrameSink, FrameSource, Piped};
use super::content;
use super::error::MessageError;
use crate::drive::Drive;
use crate::mix::Mix;
use crate::report::Report;

/// The version of the messages; a generator of another one refuses.
pub(crate) const PROTOCOL: u32 = 15;

/// From the conductor.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ToGenerator {
    /// The first message, once: what to drive. Setup begins at once.
    Start(Box<Start>),
    /// How far the workers may go; later ones add to earlier ones.
    Order(WireOrder),
}

/// What to drive, behind the version that says how to read it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Start {
    protocol: u32,
    /// A [`Drive`] for each population, read only when the version is known.
    #[serde(default)]
    drives: Option<Box<RawValue>>,
}

impl Start {
    /// What these populations are told by.
    pub(crate) fn new(drives: &[Drive]) -> Result<Self, MessageError> {
        Ok(Self {
            protocol: PROTOCOL,
            drives: Some(serde_json::value::to_raw_value(drives)?),
        })
    }

    /// What to drive, if it is told in this version.
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
        let drives: Vec<Drive> = drives.into_iter().map(read).collect::<Result<_, _>>()?;
        if let Some(nonsense) = drives.iter().find_map(Drive::nonsense) {
            return Err(MessageError::Nonsense(nonsense));
        }
        let mut drives = drives.into_iter();
        let Some(first) = drives.next() else {
            return Err(MessageError::Nonsense("nothing to drive".to_owned()));
        };
        Ok(drives.fold(Mix::from(first), Mix::and))
    }
}

/// An order as it travels.
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
    /// The workers are there; their kernel thread ids.
    Ready { threads: Vec<i32> },
    /// The trial's 0 is known, and all begin then.
    Armed,
    /// It can't begin, or its workers did not end well.
    Failed { detail: String },
    /// What a worker, by its number in this generator, reports.
    Report { worker: usize, report: Report },
}

/// Sends a message.
pub(crate) fn tell(
    to: &mut (impl FrameSink + ?Sized),
    message: &impl Serialize,
) -> Result<(), MessageError> {
    to.send(&serde_json::to_vec(message)?)
}

/// Awaits a message; `None` when the other side has ended.
pub(crate) fn hear<M: DeserializeOwned>(
    from: &mut (impl FrameSource + ?Sized),
) -> Result<Option<M>, MessageError> {
    match from.receive()? {
        Some(frame) => Ok(Some(serde_json::from_slice(&frame)?)),
        None => Ok(None),
    }
}

/// Reads all messages of a generator in these bytes, histograms too, and gives their number: for
/// tests with any bytes.
///
/// # Errors
/// What is wrong with the first message that can't be read.
pub fn check_from_generator(bytes: &[u8]) -> Result<usize, MessageError> {
    let (mut from, mut count) = (Piped(bytes), 0);
    while hear::<FromGenerator>(&mut from)?.is_some() {
        count += 1;
    }
    Ok(count)
}

/// The same for the messages to a generator.
///
/// # Errors
/// What is wrong with the first message that can't be read.
pub fn check_to_generator(bytes: &[u8]) -> Result<usize, MessageError> {
    let (mut from, mut count) = (Piped(bytes), 0);
    while let Some(message) = hear(&mut from)? {
        if let ToGenerator::Start(start) = message {
            let mut mix = start.mix()?;
            content::receive(&mut mix, &mut from)?;
        }
        count += 1;
    }
    Ok(count)
}
