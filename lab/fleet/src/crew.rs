//! The agents of a run: their leases renewed, their clocks asked, one trial after the other opened, and
//! each watched while it drives.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::Client;
use futures_util::StreamExt;
use lab_driver::DriverError;
use lab_driver::remote::{Elsewhere, End, Peer, Place, Seen, SeenOffset};
use tokio::sync::{Notify, mpsc};

use crate::carry::{Broken, Carrier, DOWN, Ends};
use crate::clock;
use crate::conductor::{Conductor, Roster, Wanted, answered, question};
use crate::ends::{Sink, Source, way};
use crate::error::FleetError;
use crate::message::{Answer, Ask, Beat, Content, Hello, Packet, Read};
use crate::name::Name;
use crate::offset::{Exchange, Offset, Offsets};
use crate::random;
use crate::subject;
use crate::weight::{weigh, workers};

/// How long an agent works for a run that it does not hear: a link may be lost for eight seconds, just before a
/// lease is renewed, and be found again within two.
const TTL: Duration = Duration::from_secs(12);
/// How often a lease is renewed, and its agent's clock is asked.
const RENEW: Duration = Duration::from_secs(1);
/// Exchanges of clocks before the first trial, and the time between them.
const EXCHANGES: usize = 64;
const BETWEEN: Duration = Duration::from_millis(5);
/// How often it is looked whether an agent is still there.
const LOOK: Duration = Duration::from_millis(200);
/// A closed connection that does not come back within this is a program that has ended.
const RETURN_WITHIN: Duration = Duration::from_millis(1500);
/// How long an agent that was lost is waited for before the next trial.
const COMES_BACK_WITHIN: Duration = Duration::from_secs(20);
/// How long before a trial's 0 agents are told of it, or twenty times the longest way there and back.
const NOTICE: Duration = Duration::from_secs(2);
/// Packets that may wait for the carrier; later ones are sent again.
const PACKETS: usize = 4096;

/// One agent of a run.
pub(crate) struct Member {
    pub(crate) hello: Hello,
    /// Its part of the load against those of others.
    weight: u32,
    epoch: u64,
    /// When its lease was last renewed.
    renewed: Mutex<Duration>,
    offsets: Mutex<(Offsets, Vec<Offset>)>,
    beat: Mutex<Beat>,
    /// It was lost, and why: nothing brings it back into this run's trial.
    lost: Mutex<Option<String>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Member {
    fn lose(&self, why: &str) {
        lock(&self.lost).get_or_insert_with(|| why.to_owned());
    }

    fn lost(&self) -> Option<String> {
        lock(&self.lost).clone()
    }

    fn best(&self) -> Option<Offset> {
        lock(&self.offsets).0.best()
    }

    fn seen(&self) -> Seen {
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
            offsets: lock(&self.offsets).1.iter().map(offset).collect(),
            times: beat.workers,
            rss_kb: beat.rss_kb,
        }
    }
}

/// The agents of a run. They are free again when this is dropped.
pub struct Crew {
    conductor: Arc<Conductor>,
    run: Name,
    /// In the order of their parts of the load.
    members: Mutex<Vec<Arc<Member>>>,
    trials: AtomicU32,
    /// Whether they have the system, and drive nothing.
    systems: bool,
    over: Arc<AtomicBool>,
}

impl fmt::Debug for Crew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.agents().map(|hello| hello.name.to_string()).collect();
        write!(f, "run {} by {names:?}", self.run)
    }
}

impl Crew {
    /// Takes agents for a run: their leases, and the measure of their clocks. Those named in `weights` have
    /// these parts of the load in relation to each other, whatever they say themselves.
    ///
    /// # Errors
    /// When they can't be had: too few, of another version, or another run's.
    pub fn take(
        conductor: &Arc<Conductor>,
        wanted: &Wanted,
        weights: &[(Name, u32)],
    ) -> Result<Self, FleetError> {
        let chosen = conductor.choose(wanted)?;
        Self::of(conductor, chosen, weights, false)
    }

    /// Takes the agent that is to have the system of a run's trials: the one of this name, or the first one free
    /// with this label, `KEY=VALUE`.
    ///
    /// # Errors
    /// When there is none, or it has no systems, is of another version, or another run's.
    pub fn take_system(conductor: &Arc<Conductor>, on: &str) -> Result<Self, FleetError> {
        let chosen = conductor.choose_system(on)?;
        Self::of(conductor, vec![chosen], &[], true)
    }

    fn of(
        conductor: &Arc<Conductor>,
        chosen: Vec<Hello>,
        weights: &[(Name, u32)],
        systems: bool,
    ) -> Result<Self, FleetError> {
        let crew = Self {
            conductor: Arc::clone(conductor),
            run: random::word().parse()?,
            members: Mutex::default(),
            trials: AtomicU32::new(0),
            systems,
            over: Arc::default(),
        };
        let weights = weigh(&chosen, weights);
        for (hello, weight) in chosen.into_iter().zip(weights) {
            let member = crew.hire(hello, weight)?;
            lock(&crew.members).push(member);
        }
        for member in crew.members() {
            crew.begin_with(&member)?;
        }
        Ok(crew)
    }

    /// Its agents.
    pub fn agents(&self) -> impl Iterator<Item = Hello> {
        let members = self.members().into_iter();
        members.map(|member| member.hello.clone())
    }

    fn members(&self) -> Vec<Arc<Member>> {
        lock(&self.members).clone()
    }

    /// Measures an agent's clock, and keeps its lease and the measurement up.
    fn begin_with(&self, member: &Arc<Member>) -> Result<(), FleetError> {
        self.measure(member)?;
        let with = (self.conductor.client.clone(), self.conductor.clocks.clone());
        let look = look_after(with, Arc::clone(member), Arc::clone(&self.over));
        self.conductor.runner.spawn(look);
        Ok(())
    }

    /// An agent that was lost may have been started again, or be free again: it is waited for, and
    /// hired anew.
    fn hire_again(&self, lost: &Member, why: &str) -> Result<Arc<Member>, FleetError> {
        let name = &lost.hello.name;
        let until = clock::now() + COMES_BACK_WITHIN;
        let gone = || FleetError::Agent {
            name: name.clone(),
            why: format!("{why}; it did not come back"),
        };
        let mut last = gone();
        while clock::now() < until {
            match self.conductor.choose(&Wanted::Named(vec![name.clone()])) {
                Ok(mut chosen) => {
                    let member = self.hire(chosen.pop().ok_or_else(gone)?, lost.weight)?;
                    self.begin_with(&member)?;
                    return Ok(member);
                }
                Err(FleetError::Absent(_)) => last = gone(),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn hire(&self, hello: Hello, weight: u32) -> Result<Arc<Member>, FleetError> {
        let lease = Ask::Lease {
            conductor: self.conductor.name.clone(),
            run: self.run.clone(),
            ttl_ms: TTL.as_millis() as u64,
        };
        let name = hello.name.clone();
        let epoch = match self.conductor.ask(&name, lease.for_one(&hello))? {
            Answer::Granted { epoch } => epoch,
            Answer::Held { holder, ms_left } => {
                let seconds = ms_left.div_ceil(1000);
                let why = format!("works for {holder}, for {seconds} s at least");
                return Err(FleetError::Agent { name, why });
            }
            Answer::Refused { why } => return Err(FleetError::Agent { name, why }),
            Answer::Done => {
                let why = "grants no lease".to_owned();
                return Err(FleetError::Agent { name, why });
            }
        };
        Ok(Arc::new(Member {
            hello,
            weight,
            epoch,
            renewed: Mutex::new(clock::now()),
            offsets: Mutex::default(),
            beat: Mutex::default(),
            lost: Mutex::default(),
        }))
    }

    /// Measures an agent's clock before anything depends on it.
    fn measure(&self, member: &Arc<Member>) -> Result<(), FleetError> {
        let (clocks, of) = (self.conductor.clocks.clone(), Arc::clone(member));
        self.conductor.runner.wait(async move {
            for _ in 0..EXCHANGES {
                ask_clock(&clocks, &of).await;
                tokio::time::sleep(BETWEEN).await;
            }
        });
        if lock(&member.offsets).0.len() < EXCHANGES / 2 {
            return Err(FleetError::Agent {
                name: member.hello.name.clone(),
                why: "does not say what its clock reads".to_owned(),
            });
        }
        Ok(())
    }

    /// Opens the next trial: each agent waits for what to drive.
    fn open_all(&self) -> Result<Vec<Peer>, FleetError> {
        let trial = self.trials.fetch_add(1, Ordering::Relaxed) + 1;
        let mut members = self.members();
        for member in &mut members {
            if let Some(why) = member.lost() {
                *member = self.hire_again(member, &why)?;
            }
        }
        lock(&self.members).clone_from(&members);
        let members = members.iter();
        members.map(|member| self.open_one(member, trial)).collect()
    }

    /// What an agent is asked for a trial.
    fn opening(&self, epoch: u64, trial: u32) -> Ask {
        match self.systems {
            true => Ask::System { epoch, trial },
            false => Ask::Open { epoch, trial },
        }
    }

    fn open_one(&self, member: &Arc<Member>, trial: u32) -> Result<Peer, FleetError> {
        let name = member.hello.name.clone();
        let fail = |why: String| FleetError::Agent {
            name: name.clone(),
            why,
        };
        if let Some(why) = member.lost() {
            return Err(fail(why));
        }
        let up = subject::up(&self.conductor.name, &self.run, &name);
        let (client, subject) = (self.conductor.client.clone(), up);
        // Heard from before the first packet can come.
        let heard = self
            .conductor
            .runner
            .wait(async move { client.subscribe(subject).await });
        let heard = heard.map_err(|error| fail(error.to_string()))?;
        let epoch = member.epoch;
        let open = self.opening(epoch, trial);
        match self.conductor.ask(&name, open.for_one(&member.hello))? {
            Answer::Done => {}
            Answer::Refused { why } => return Err(fail(why)),
            _ => return Err(fail("opens no trial".to_owned())),
        }
        lock(&member.offsets).1.clear();
        *lock(&member.beat) = Beat::default();
        let ((into, reports), (orders, out)) = (way(), way());
        let (packets, came) = mpsc::channel(PACKETS);
        let ends = Ends {
            out,
            into: Some(into),
            packets: came,
        };
        let client = self.conductor.client.clone();
        let to = subject::down(&name);
        let carrier = Carrier::new(client, to, (epoch, trial), DOWN);
        let seat = Seat {
            client: self.conductor.client.clone(),
            runner: self.conductor.runner.handle(),
            member: Arc::clone(member),
            trial,
            given_up: Arc::default(),
        };
        let given_up = Arc::clone(&seat.given_up);
        let watch = Watch {
            member: Arc::clone(member),
            roster: self.conductor.roster.clone(),
            trial,
            sign: clock::now(),
            heard,
            packets,
        };
        self.conductor.runner.spawn(async move {
            let of = Arc::clone(&watch.member);
            tokio::select! {
                () = carry(carrier, ends, &of) => {}
                () = watch.until_lost() => {}
                () = given_up.notified() => {}
            }
        });
        Ok(Peer {
            orders: Box::new(Sink(orders, self.conductor.runner.handle())),
            reports: Box::new(Source(reports)),
            place: Box::new(seat),
            cores: member.hello.cores.clone(),
            // Its owner may run anything else there.
            own_cores: false,
            weight: member.weight,
        })
    }
}

impl Elsewhere for Crew {
    fn open(&self) -> Result<Vec<Peer>, DriverError> {
        self.open_all().map_err(|error| match error {
            FleetError::Agent { name, why } => DriverError::Lost {
                name: format!("agent {name}"),
                detail: why,
            },
            error => DriverError::Lost {
                name: "the fleet".to_owned(),
                detail: format!("can't be used: {error}"),
            },
        })
    }

    fn seen(&self) -> Vec<Seen> {
        self.members().iter().map(|member| member.seen()).collect()
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for member in self.members() {
            let release = Ask::Release {
                epoch: member.epoch,
            };
            // Who does not hear it is free when the lease lapses.
            let hello = &member.hello;
            let _lapses = self.conductor.ask(&hello.name, release.for_one(hello));
        }
    }
}

/// Asks an agent's clock once.
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
    lock(&member.offsets).0.add(exchange);
}

/// Renews an agent's lease and asks its clock until the run is over.
async fn look_after(
    (client, clocks): (Client, Client),
    member: Arc<Member>,
    over: Arc<AtomicBool>,
) {
    while !over.load(Ordering::Relaxed) && member.lost().is_none() {
        tokio::time::sleep(RENEW).await;
        // Before the clock, whose answer may be waited for in vain.
        renew(&client, &member).await;
        ask_clock(&clocks, &member).await;
        let best = member.best();
        lock(&member.offsets).1.extend(best.map(|best| Offset {
            at: clock::nanos(),
            ..best
        }));
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
        // Asked again in a second.
        Err(_) => {}
    }
}

/// Carries a trial's frames; an end before both streams' ends is a loss.
async fn carry(carrier: Carrier, mut ends: Ends, member: &Member) {
    match carrier.run(&mut ends).await {
        Ok(()) | Err(Broken::GivenUp) => {}
        Err(broken) => member.lose(&broken.to_string()),
    }
    drop(ends);
}

/// Watches one agent during one trial.
struct Watch {
    member: Arc<Member>,
    roster: Roster,
    trial: u32,
    /// When anything last came from it.
    sign: Duration,
    heard: async_nats::Subscriber,
    packets: mpsc::Sender<Content>,
}

impl Watch {
    /// Hands its packets on until it is lost.
    async fn until_lost(mut self) {
        let why = self.why_lost().await;
        // Before the carrier is dropped: whoever hears no more then asks why.
        self.member.lose(&why);
    }

    async fn why_lost(&mut self) -> String {
        let mut look = tokio::time::interval(LOOK);
        loop {
            tokio::select! {
                message = self.heard.next() => match message {
                    Some(message) => self.take(&message.payload).await,
                    None => return "can't be heard: the connection to the hub is gone".to_owned(),
                },
                _ = look.tick() => {
                    if let Some(why) = self.lost(clock::now()) {
                        return why;
                    }
                }
            }
        }
    }

    async fn take(&mut self, payload: &[u8]) {
        let Ok(packet) = Packet::decode(payload) else {
            return;
        };
        if (packet.epoch, packet.trial) != (self.member.epoch, self.trial) {
            return;
        }
        self.sign = clock::now();
        if let Content::Beat(beat) = &packet.content {
            let beat = serde_json::from_slice::<Beat>(beat).ok();
            // Of workers that have ended the last word counts.
            if let Some(beat) = beat.filter(|beat| !beat.workers.is_empty()) {
                *lock(&self.member.beat) = beat;
            }
            return;
        }
        // The carrier ends before this only with the trial.
        let _over = self.packets.send(packet.content).await;
    }

    fn lost(&self, now: Duration) -> Option<String> {
        if let Some(why) = self.member.lost() {
            return Some(why);
        }
        let roster = self.roster.lock();
        let left = roster
            .get(&self.member.hello.name)
            .and_then(|heard| heard.left);
        // What it sent before may be read after the word that it left.
        let silent_since = left.map(|left| left.max(self.sign));
        if silent_since.is_some_and(|since| since + RETURN_WITHIN < now) {
            return Some("was lost: its program ended, or was killed".to_owned());
        }
        let renewed = *lock(&self.member.renewed);
        let silent = now.saturating_sub(self.sign);
        (renewed + TTL < now && silent > TTL / 2).then(|| {
            let seconds = silent.as_secs_f64();
            format!("was lost: nothing was heard of it for {seconds:.1} s, and its lease is over")
        })
    }
}

/// Where an agent of a trial lives.
struct Seat {
    client: Client,
    runner: tokio::runtime::Handle,
    member: Arc<Member>,
    trial: u32,
    /// Nothing is carried any more: what the agent would still say is waited for in vain.
    given_up: Arc<Notify>,
}

impl Place for Seat {
    fn name(&self) -> String {
        format!("agent {}", self.member.hello.name)
    }

    fn process(&self) -> Option<u32> {
        None
    }

    fn moment(&self, here: u64) -> u64 {
        self.member.best().map_or(here, |best| best.there(here))
    }

    fn notice(&self) -> Duration {
        let longest = lock(&self.member.offsets).0.longest();
        NOTICE.max(Duration::from_nanos(longest.saturating_mul(20)))
    }

    fn must_arm(&self) -> bool {
        true
    }

    fn end(&self, _at_once: bool) -> End {
        let wrong = self.member.lost();
        End {
            lost: wrong.is_some(),
            wrong,
            words: String::new(),
        }
    }

    fn kill(&self) {
        let (client, name) = (self.client.clone(), self.member.hello.name.clone());
        let drop = Ask::Drop {
            epoch: self.member.epoch,
            trial: self.trial,
        };
        let drop = drop.for_one(&self.member.hello);
        self.given_up.notify_one();
        self.runner.spawn(async move {
            // Who does not hear it stops when its lease lapses.
            let _lapses = question(&client, &name, &drop).await;
        });
    }
}
