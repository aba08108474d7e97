//! A trial that an agent drives: the driver's generator on a thread of its own, and the carrier of what
//! it says and hears. Dropped, both end, and the users with them.

use std::io;

use async_nats::Client;
use lab_driver::remote::generate;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::carry::{Broken, Carrier, Ends, UP};
use crate::connection::say;
use crate::ends::{Sink, Source, WAITING};
use crate::message::{Content, Packet};

/// Packets that may wait for the carrier; later ones are sent again.
const PACKETS: usize = 2048;

/// A trial under way.
pub(crate) struct Driving {
    epoch: u64,
    number: u32,
    up: String,
    packets: mpsc::Sender<Content>,
    carrier: JoinHandle<()>,
}

/// A generator that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) trial: u32,
    pub(crate) wrong: Option<String>,
}

impl Driving {
    /// Begins: the generator waits for what to drive.
    pub(crate) fn begin(
        (client, up): (Client, String),
        (epoch, number): (u64, u32),
        ended: mpsc::Sender<Ended>,
    ) -> io::Result<Self> {
        let (packets, came) = mpsc::channel(PACKETS);
        let (into, orders) = mpsc::channel(WAITING);
        let (reports, out) = mpsc::channel(WAITING);
        let mut ends = Ends {
            out,
            into: Some(into),
            packets: came,
        };
        let generator = std::thread::Builder::new().name(format!("trial-{number}"));
        generator.spawn(move || {
            let result = generate(Source(orders), Sink(reports));
            let wrong = result.err().map(|error| error.to_string());
            // The agent may have ended.
            let _gone = ended.blocking_send(Ended {
                trial: number,
                wrong,
            });
        })?;
        let carrier = Carrier::new(client.clone(), up.clone(), (epoch, number), UP);
        let to = up.clone();
        let carrier = tokio::spawn(async move {
            if let Err(Broken::Full(why)) = carrier.run(&mut ends).await {
                let packet = Packet {
                    epoch,
                    trial: number,
                    content: Content::Gone(why.into_bytes()),
                };
                // It waits for the connection where there is none: beats go on, and no window comes.
                let _unheard = client.publish(to, packet.encode().into()).await;
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

    /// Takes a packet in; one too many is lost, and sent again.
    pub(crate) fn take(&self, content: Content) {
        let _sent_again = self.packets.try_send(content);
    }

    /// Says something beside the frames.
    pub(crate) async fn say(&self, client: &Client, content: Content) {
        let packet = Packet {
            epoch: self.epoch,
            trial: self.number,
            content,
        };
        // The next beat says the same, and who is gone is missed.
        say(client, self.up.clone(), packet.encode().into()).await;
    }
}

impl Drop for Driving {
    fn drop(&mut self) {
        // With it go the ends that the generator waits at.
        self.carrier.abort();
    }
}
