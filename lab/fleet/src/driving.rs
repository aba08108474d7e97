//! An agent's part in a trial: the driver's generator or the system's manager on its own thread, and the carrier of its
//! frames. Dropping it ends both, and with them the users or the system.

use std::fmt;
use std::io;
use std::sync::Arc;

use async_nats::Client;
use lab_driver::remote::{FrameSink, FrameSource, generate};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::carry::{AGAIN, Broken, Carrier, Ends, UP};
use crate::connection::say;
use crate::ends::{Sink, Source, way};
use crate::message::{Content, Packet};

/// Packets that may wait for the carrier; further ones are retransmitted.
const PACKETS: usize = 2048;

/// Orders of a trial, and the reports on them.
type Orders = Box<dyn FrameSource + Send>;
type Reports = Box<dyn FrameSink + Send>;

/// Manages systems of runs on the agent's machine: executes orders until they end, then restores the machine and
/// returns a description of any failure. This crate knows nothing more of it.
#[derive(Clone)]
pub struct Systems(Arc<Serve>);

type Serve = dyn Fn(Orders, Reports) -> Result<(), String> + Send + Sync;

impl Systems {
    /// Wraps the function that runs each trial, on its own thread.
    pub fn new(
        serve: impl Fn(Orders, Reports) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(serve))
    }
}

impl fmt::Debug for Systems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("systems of runs")
    }
}

/// The role of an agent in a trial.
#[derive(Debug, Clone)]
pub(crate) enum Part {
    Load,
    System(Systems),
}

impl Part {
    fn serve(self, orders: Source, reports: Sink) -> Result<(), String> {
        match self {
            Self::Load => generate(orders, reports).map_err(|error| error.to_string()),
            Self::System(Systems(serve)) => serve(Box::new(orders), Box::new(reports)),
        }
    }
}

/// A running trial.
pub(crate) struct Driving {
    epoch: u64,
    number: u32,
    up: String,
    packets: mpsc::Sender<Content>,
    carrier: JoinHandle<()>,
}

/// An ended trial: its users have stopped, or the machine of its system is restored.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) trial: u32,
    pub(crate) had_system: bool,
    pub(crate) wrong: Option<String>,
}

impl Driving {
    /// Starts the part, which then waits for orders.
    pub(crate) fn begin(
        part: Part,
        (client, up): (Client, String),
        (epoch, number): (u64, u32),
        ended: mpsc::Sender<Ended>,
    ) -> io::Result<Self> {
        let had_system = matches!(part, Part::System(_));
        let (packets, came) = mpsc::channel(PACKETS);
        let ((into, orders), (reports, out)) = (way(), way());
        let runtime = Handle::current();
        let mut ends = Ends {
            out,
            into: Some(into),
            packets: came,
        };
        let generator = std::thread::Builder::new().name(format!("trial-{number}"));
        generator.spawn(move || {
            let wrong = part.serve(Source(orders), Sink(reports, runtime)).err();
            // The agent may have ended.
            let _gone = ended.blocking_send(Ended {
                trial: number,
                had_system,
                wrong,
            });
        })?;
        let carrier = Carrier::new(client.clone(), up.clone(), (epoch, number), UP);
        let to = up.clone();
        let carrier = tokio::spawn(async move {
            let end = carrier.run(&mut ends).await;
            if let Err(broken @ (Broken::Full(_) | Broken::NoFrame)) = end {
                let packet = Packet {
                    epoch,
                    trial: number,
                    content: Content::Gone(broken.to_string().into_bytes()),
                };
                // The generator has no carrier any more.
                drop(ends);
                // A notice that can't be sent is lost with the connection: repeat it until the trial is dropped.
                loop {
                    say(&client, to.clone(), packet.encode().into()).await;
                    sleep(AGAIN).await;
                }
            }
        });
        Ok(Self {
            epoch,
            number,
            up,
            packets,
            carrier,
        })
    }

    pub(crate) fn is(&self, epoch: u64, trial: u32) -> bool {
        (self.epoch, self.number) == (epoch, trial)
    }

    /// Receives a packet; a packet beyond the limit is dropped, and retransmitted.
    pub(crate) fn take(&self, content: Content) {
        let _sent_again = self.packets.try_send(content);
    }

    /// Sends a message apart from the frames.
    pub(crate) async fn say(&self, client: &Client, content: Content) {
        let packet = Packet {
            epoch: self.epoch,
            trial: self.number,
            content,
        };
        // The next beat repeats the content, and the conductor detects a lost agent.
        say(client, self.up.clone(), packet.encode().into()).await;
    }
}

impl Drop for Driving {
    fn drop(&mut self) {
        // Drops the ends that the generator waits on.
        self.carrier.abort();
    }
}
