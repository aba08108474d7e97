//! Carries the frames of one trial between two programs: splits them into numbered packets, retransmits until
//! acknowledged, and reassembles each frame once, in order. Both sides do the same.

use std::time::Duration;

use async_nats::Client;
use lab_driver::remote::{Arrivals, MAX_FRAME_BYTES, Unacknowledged};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::connection::say;
use crate::ends::{Inlet, Outlet};
use crate::message::{Content, MOST_CONTENT, Packet};

/// Interval between retransmissions of unacknowledged packets.
pub(crate) const AGAIN: Duration = Duration::from_millis(500);
/// Maximum bytes per retransmission, so that a slow link is not flooded.
const AGAIN_BYTES: usize = 4 << 20;
/// The maximum time for an agent to acknowledge the last packet.
const LAST_WORD: Duration = Duration::from_secs(5);

/// Limits on data that waits for acknowledgement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Backlog {
    pub(crate) packets: usize,
    pub(crate) bytes: usize,
    /// Above this number of bytes in flight no further frame is accepted: files are read faster than they arrive. If
    /// `None`, sending never waits and a full backlog is an error.
    pub(crate) ahead: Option<usize>,
    /// How long the last packet is retransmitted; if `None`, until the carrier is dropped.
    pub(crate) last_word: Option<Duration>,
}

/// To an agent: a workload with the variables of all its users.
pub(crate) const DOWN: Backlog = Backlog {
    packets: 1024,
    bytes: 2 * MAX_FRAME_BYTES as usize,
    ahead: Some(8 << 20),
    last_word: Some(LAST_WORD),
};
/// To the conductor: minutes of windows, also of many workers or with windows below a second. The conductor waits for
/// the last packet however long the link is lost: an agent ends with its lease.
pub(crate) const UP: Backlog = Backlog {
    packets: 16 << 10,
    bytes: 32 << 20,
    ahead: None,
    last_word: None,
};

/// One side of a trial's transport.
pub(crate) struct Carrier {
    client: Client,
    /// Subject that packets are sent to.
    to: String,
    epoch: u64,
    trial: u32,
    sent: Unacknowledged,
    ahead: Option<usize>,
    last_word: Option<Duration>,
    came: Arrivals,
    /// Parts of the frame being reassembled.
    parts: Vec<u8>,
}

/// What a carrier is connected to.
pub(crate) struct Ends {
    /// Frames to send; its end ends the stream.
    pub(crate) out: Outlet,
    /// Destination of received frames; it ends with the peer's stream.
    pub(crate) into: Option<Inlet>,
    /// Packets of this epoch and trial.
    pub(crate) packets: mpsc::Receiver<Content>,
}

/// Why a carrier ended before both streams.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Broken {
    /// Too much data waits for acknowledgement.
    #[error("{0}")]
    Full(String),
    /// The received packets form no valid frame.
    #[error("what came is no frame")]
    NoFrame,
    /// The peer gave up.
    #[error("{0}")]
    Gone(String),
    /// This side no longer needs the carrier.
    #[error("it was given up")]
    GivenUp,
}

impl Carrier {
    pub(crate) fn new(
        client: Client,
        to: String,
        (epoch, trial): (u64, u32),
        room: Backlog,
    ) -> Self {
        Self {
            client,
            to,
            epoch,
            trial,
            sent: Unacknowledged::new(room.packets, room.bytes),
            ahead: room.ahead,
            last_word: room.last_word,
            came: Arrivals::default(),
            parts: Vec::new(),
        }
    }

    /// Carries frames until both streams have ended and every packet is acknowledged.
    pub(crate) async fn run(mut self, ends: &mut Ends) -> Result<(), Broken> {
        let Ends { out, into, packets } = ends;
        let mut again = interval(AGAIN);
        again.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut out_ended = false;
        let mut given_up: Option<Instant> = None;
        while !(out_ended && into.is_none() && self.sent.is_empty()) {
            if let Some(within) = self.last_word.filter(|_| out_ended && into.is_none()) {
                let until = *given_up.get_or_insert_with(|| Instant::now() + within);
                if Instant::now() > until {
                    return Ok(());
                }
            }
            tokio::select! {
                content = packets.recv() => match content {
                    Some(content) => self.take(content, into).await?,
                    None => return Err(Broken::GivenUp),
                },
                frame = out.recv(), if !out_ended && self.takes_more() => match frame {
                    Some(frame) => self.send(&frame).await?,
                    None => {
                        out_ended = true;
                        self.keep(Kind::End, &[]).await?;
                    }
                },
                _ = again.tick() => self.send_again().await,
            }
        }
        Ok(())
    }

    fn takes_more(&self) -> bool {
        self.ahead.is_none_or(|bytes| self.sent.bytes() <= bytes)
    }

    /// Splits a frame into packets and sends them.
    async fn send(&mut self, frame: &[u8]) -> Result<(), Broken> {
        let mut parts = frame.chunks(MOST_CONTENT).peekable();
        if parts.peek().is_none() {
            return self.keep(Kind::Last, &[]).await;
        }
        while let Some(part) = parts.next() {
            let kind = match parts.peek() {
                Some(_) => Kind::Part,
                None => Kind::Last,
            };
            self.keep(kind, part).await?;
        }
        Ok(())
    }

    async fn keep(&mut self, kind: Kind, part: &[u8]) -> Result<(), Broken> {
        let kept = kept(kind, part);
        let number = self.sent.push(kept.clone());
        let number = number.map_err(|full| Broken::Full(full.to_string()))?;
        self.publish(content(number, &kept)).await;
        Ok(())
    }

    /// Stored packets consist of their kind and their bytes.
    async fn send_again(&mut self) {
        let mut bytes = 0;
        let waiting = self.sent.waiting().take_while(|(_, kept)| {
            bytes += kept.len();
            bytes <= AGAIN_BYTES
        });
        let contents: Vec<Content> = waiting
            .map(|(number, kept)| content(number, kept))
            .collect();
        for content in contents {
            self.publish(content).await;
        }
    }

    /// Receives a packet.
    async fn take(&mut self, content: Content, into: &mut FrameInlet) -> Result<(), Broken> {
        let (number, kept) = match content {
            Content::Part { number, bytes } => (number, kept(Kind::Part, &bytes)),
            Content::Last { number, bytes } => (number, kept(Kind::Last, &bytes)),
            Content::End { number } => (number, kept(Kind::End, &[])),
            Content::Below(number) => {
                self.sent.acknowledge(number);
                return Ok(());
            }
            Content::Gone(why) => {
                let why = String::from_utf8_lossy(&why).into_owned();
                return Err(Broken::Gone(why));
            }
            Content::Beat(_) => return Ok(()),
        };
        for packet in self.came.take(number, kept) {
            self.put_together(&packet, into).await?;
        }
        self.publish(Content::Below(self.came.below())).await;
        Ok(())
    }

    async fn put_together(&mut self, packet: &[u8], into: &mut FrameInlet) -> Result<(), Broken> {
        let (Some((kind, bytes)), Some(open)) = (packet.split_first(), into.as_ref()) else {
            return Err(Broken::NoFrame);
        };
        if self.parts.len() + bytes.len() > MAX_FRAME_BYTES as usize {
            return Err(Broken::NoFrame);
        }
        self.parts.extend(bytes);
        if *kind == Kind::Last as u8 {
            let frame = std::mem::take(&mut self.parts);
            // A closed receiver is no error: data of its side may still have to be sent.
            let _taken = open.send(frame).await;
        } else if *kind == Kind::End as u8 {
            *into = None;
        }
        Ok(())
    }

    /// A packet that the connection rejects is retransmitted like a lost one.
    async fn publish(&self, content: Content) {
        let packet = Packet {
            epoch: self.epoch,
            trial: self.trial,
            content,
        };
        say(&self.client, self.to.clone(), packet.encode().into()).await;
    }
}

/// Destination of frames, until the peer's stream has ended.
type FrameInlet = Option<Inlet>;

/// The role of a numbered packet in its frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Kind {
    Part = 0,
    Last = 1,
    End = 2,
}

/// Encodes a packet as stored until its acknowledgement.
fn kept(kind: Kind, bytes: &[u8]) -> Vec<u8> {
    let mut kept = vec![kind as u8];
    kept.extend(bytes);
    kept
}

/// Converts a stored packet to the content to send.
fn content(number: u64, kept: &[u8]) -> Content {
    let (kind, bytes) = kept.split_first().unwrap_or((&0, &[]));
    let bytes = bytes.to_vec();
    match *kind {
        kind if kind == Kind::Part as u8 => Content::Part { number, bytes },
        kind if kind == Kind::Last as u8 => Content::Last { number, bytes },
        _ => Content::End { number },
    }
}
