//! One agent of a run: leases and renews it, and measures its clock. Agents are processed concurrently: a lease of
//! twelve seconds must not wait for the clocks of two hundred others.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::Client;
use lab_driver::remote::{Seen, SeenOffset};

use crate::clock;
use crate::conductor::{Conductor, answered, question};
use crate::error::FleetError;
use crate::message::{Answer, Ask, Beat, Hello, Read};
use crate::name::Name;
use crate::offset::{Exchange, Offset, Offsets};
use crate::subject;
use crate::weight::workers;

/// How long an agent works without a message from its run: covers a link loss of eight seconds just before a renewal,
/// plus two to reconnect.
pub(crate) const TTL: Duration = Duration::from_secs(12);
/// Interval between lease renewals and clock readings.
const RENEW: Duration = Duration::from_secs(1);
/// Clock exchanges before the first trial, and the time between them.
const EXCHANGES: u64 = 64;
const BETWEEN: Duration = Duration::from_millis(5);

/// One agent of a run.
pub(crate) struct Member {
    pub(crate) hello: Hello,
    /// Weight of its part of the load.
    pub(crate) weight: u32,
    pub(crate) epoch: u64,
    /// When its lease was last renewed.
    pub(crate) renewed: Mutex<Duration>,
    pub(crate) offsets: Mutex<Offsets>,
    pub(crate) beat: Mutex<Beat>,
    /// Why it was lost: it can't rejoin this run's trial.
    lost: Mutex<Option<String>>,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Member {
    pub(crate) fn lose(&self, why: &str) {
        lock(&self.lost).get_or_insert_with(|| why.to_owned());
    }

    pub(crate) fn lost(&self) -> Option<String> {
        lock(&self.lost).clone()
    }

    pub(crate) fn best(&self) -> Option<Offset> {
        lock(&self.offsets).best()
    }

    pub(crate) fn seen(&self) -> Seen {
        let Hello {
            name,
            host,
            program,
            boot_id,
            ..
        } = self.hello.clone();
        let beat = lock(&self.beat).clone();
        let offset = |known: &Offset| SeenOffset {
            at: known.at,
            offset: known.offset,
            bound: known.bound,
        };
        Seen {
            name: name.into(),
            host,
            version: program,
            boot_id,
            weight: self.weight,
            workers: workers(&self.hello),
            offsets: lock(&self.offsets).bests().iter().map(offset).collect(),
            times: beat.workers,
            rss_kb: beat.rss_kb,
        }
    }
}

/// Shared inputs for leasing agents.
#[derive(Clone)]
pub(crate) struct Hiring {
    client: Client,
    clocks: Client,
    conductor: Name,
    run: Name,
    /// The run is over: no lease is renewed any more.
    over: Arc<AtomicBool>,
}

impl Hiring {
    pub(crate) fn new(conductor: &Conductor, run: &Name, over: &Arc<AtomicBool>) -> Self {
        Self {
            client: conductor.client.clone(),
            clocks: conductor.clocks.clone(),
            conductor: conductor.name.clone(),
            run: run.clone(),
            over: Arc::clone(over),
        }
    }

    /// Leases an agent and keeps renewing the lease.
    pub(crate) async fn hire(self, hello: Hello, weight: u32) -> Result<Arc<Member>, FleetError> {
        let lease = Ask::Lease {
            conductor: self.conductor.clone(),
            run: self.run.clone(),
            ttl_ms: TTL.as_millis() as u64,
        };
        let name = hello.name.clone();
        let asked = clock::now();
        let refused = |why: String| {
            Err(FleetError::Agent {
                name: name.clone(),
                why,
            })
        };
        let epoch = match question(&self.client, &name, &lease.for_one(&hello)).await? {
            Answer::Granted { epoch } => epoch,
            Answer::Held { holder, ms_left } => {
                let seconds = ms_left.div_ceil(1000);
                return refused(format!("works for {holder}, for {seconds} s at least"));
            }
            Answer::Refused { why } => return refused(why),
            Answer::Done => return refused("grants no lease".to_owned()),
        };
        let member = Arc::new(Member {
            hello,
            weight,
            epoch,
            renewed: Mutex::new(asked),
            offsets: Mutex::default(),
            beat: Mutex::default(),
            lost: Mutex::default(),
        });
        tokio::spawn(look_after(self, Arc::clone(&member)));
        Ok(member)
    }

    /// Measures an agent's clock before anything depends on it.
    pub(crate) async fn measure(self, member: Arc<Member>) -> Result<(), FleetError> {
        for _ in 0..EXCHANGES {
            ask_clock(&self.clocks, &member).await;
            tokio::time::sleep(BETWEEN).await;
        }
        if lock(&member.offsets).told() < EXCHANGES / 2 {
            return Err(FleetError::Agent {
                name: member.hello.name.clone(),
                why: "does not say what its clock reads".to_owned(),
            });
        }
        Ok(())
    }
}

/// Reads an agent's clock once.
async fn ask_clock(clocks: &Client, member: &Member) {
    let asked = clock::nanos();
    let subject = subject::clock(&member.hello.name);
    let Ok(read) = answered::<Read>(clocks, subject, &()).await else {
        return;
    };
    let heard = clock::nanos();
    if read.boot_id != member.hello.boot_id {
        member.lose("was on a machine that started anew");
    }
    if read.instance != member.hello.instance {
        member.lose("was started anew");
    }
    let exchange = Exchange {
        asked,
        came: read.came,
        went: read.went,
        heard,
    };
    lock(&member.offsets).add(exchange);
}

/// Renews an agent's lease and reads its clock until the run is over.
async fn look_after(with: Hiring, member: Arc<Member>) {
    while !with.over.load(Ordering::Relaxed) && member.lost().is_none() {
        tokio::time::sleep(RENEW).await;
        // Before the clock, whose reply may never arrive.
        renew(&with.client, &member).await;
        ask_clock(&with.clocks, &member).await;
    }
}

/// Renews an agent's lease, if it answers.
async fn renew(client: &Client, member: &Member) {
    let asked = clock::now();
    let renew = Ask::Renew {
        epoch: member.epoch,
        ttl_ms: TTL.as_millis() as u64,
    };
    let renew = renew.for_one(&member.hello);
    match question(client, &member.hello.name, &renew).await {
        Ok(Answer::Granted { .. }) => *lock(&member.renewed) = asked,
        Ok(_) => member.lose("does not work for this run any more: its lease had lapsed"),
        // Retried in a second.
        Err(_) => {}
    }
}
