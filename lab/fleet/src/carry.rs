//! Carries the frames of one trial between two programs: cut into packets, numbered, sent again until
//! they are acknowledged, put together in order, each once. Both sides do the same.

use std::time::Duration;

use async_nats::Client;
use lab_driver::remote::{Arrivals, MAX_FRAME_BYTES, Unacknowledged};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::connection::say;
use crate::ends::{Inlet, Outlet};
use crate::message::{Content, MOST_CONTENT, Packet};

/// How often what was not acknowledged is sent again.
pub(crate) const AGAIN: Duration = Duration::from_millis(500);
/// How much of it at once: a way that is slow is not to be flooded.
const AGAIN_BYTES: usize = 4 << 20;
/// How long an agent may take to acknowledge the last of it.
const LAST_WORD: Duration = Duration::from_secs(5);

/// How much may wait for acknowledgement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Backlog {
    pub(crate) packets: usize,
    pub(crate) bytes: usize,
    /// With more bytes than these on their way no frame is taken on: files are read faster than they
    /// arrive. Without it there is no waiting, and too much is an error.
    pub(crate) ahead: Option<usize>,
    /// How long the last of it is sent again. Without it until the carrier is dropped.
    pub(crate) last_word: Option<Duration>,
}

/// To an agent: a workload with the variables of all its users.
pub(crate) const DOWN: Backlog = Backlog {
    packets: 1024,
    bytes: 2 * MAX_FRAME_BYTES as usize,
    ahead: Some(8 << 20),
    last_word: Some(LAST_WORD),
};
/// To the conductor: minutes of windows, also of many workers, and where windows are shorter than a second. It waits
/// for the last one, however long the link may be lost: an agent ends with its lease.
pub(crate) const UP: Backlog = Backlog {
    packets: 16 << 10,
    bytes: 32 << 20,
    ahead: None,
    last_word: None,
};

/// One side of a trial's way.
pub(crate) struct Carrier {
    client: Client,
    /// Where packets go.
    to: String,
    epoch: u64,
    trial: u32,
    sent: Unacknowledged,
    ahead: Option<usize>,
    last_word: Option<Duration>,
    came: Arrivals,
    /// Of the frame that is being put together.
    parts: Vec<u8>,
}

/// What a carrier is connected to.
pub(crate) struct Ends {
    /// Frames to send; its end is the end of the stream.
    pub(crate) out: Outlet,
    /// Where frames go that came; it ends with the other side's stream.
    pub(crate) into: Option<Inlet>,
    /// Packets of this epoch and trial.
    pub(crate) packets: mpsc::Receiver<Content>,
}

/// Why a carrier ended before both streams did.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Broken {
    /// What was sent waits for acknowledgement, too much of it.
    #[error("{0}")]
    Full(String),
    /// What came can't be put together.
    #[error("what came is no frame")]
    NoFrame,
    /// The other side gave up.
    #[error("{0}")]
    Gone(String),
    /// Nobody needs it any more on this side.
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

    /// Carries until both streams have ended and all is acknowledged.
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

    /// Cuts a frame into packets and sends them.
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

    /// What waits was kept as its kind and its bytes.
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

    /// Takes a packet in.
    async fn take(&mut self, content: Content, into: &mut Came) -> Result<(), Broken> {
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

    async fn put_together(&mut self, packet: &[u8], into: &mut Came) -> Result<(), Broken> {
        let (Some((kind, bytes)), Some(open)) = (packet.split_first(), into.as_ref()) else {
            return Err(Broken::NoFrame);
        };
        if self.parts.len() + bytes.len() > MAX_FRAME_BYTES as usize {
            return Err(Broken::NoFrame);
        }
        self.parts.extend(bytes);
        if *kind == Kind::Last as u8 {
            let frame = std::mem::take(&mut self.parts);
            // Who takes nothing any more may have said something that is still to be carried.
            let _taken = open.send(frame).await;
        } else if *kind == Kind::End as u8 {
            *into = None;
        }
        Ok(())
    }

    /// What the connection does not take is sent again, as what is lost is.
    async fn publish(&self, content: Content) {
        let packet = Packet {
            epoch: self.epoch,
            trial: self.trial,
            content,
        };
        say(&self.client, self.to.clone(), packet.encode().into()).await;
    }
}

/// Where frames go, until the other side's stream has ended.
type Came = Option<Inlet>;

/// What a numbered packet is to its frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Kind {
    Part = 0,
    Last = 1,
    End = 2,
}

/// A packet as it is kept until it is acknowledged.
fn kept(kind: Kind, bytes: &[u8]) -> Vec<u8> {
    let mut kept = vec![kind as u8];
    kept.extend(bytes);
    kept
}

/// The same as it is sent.
fn content(number: u64, kept: &[u8]) -> Content {
    let (kind, bytes) = kept.split_first().unwrap_or((&0, &[]));
    let bytes = bytes.to_vec();
    match *kind {
        kind if kind == Kind::Part as u8 => Content::Part { number, bytes },
        kind if kind == Kind::Last as u8 => Content::Last { number, bytes },
        _ => Content::End { number },
    }
}
