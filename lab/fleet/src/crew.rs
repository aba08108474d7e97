//! The agents of a run: leased together, opened together for each trial, and each watched while it drives.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_nats::{Client, Subscriber};
use futures_util::{StreamExt, stream};
use lab_driver::DriverError;
use lab_driver::remote::{End, Peer, Place, RemoteGenerators, Seen};
use tokio::sync::{Notify, mpsc};

use crate::carry::{Broken, Carrier, DOWN, Ends};
use crate::clock;
use crate::conductor::{Conductor, Roster, Wanted, question};
use crate::ends::{Sink, Source, way};
use crate::error::FleetError;
use crate::member::{Hiring, Member, TTL, lock};
use crate::message::{Answer, Ask, Beat, Content, Hello, Packet};
use crate::name::Name;
use crate::random;
use crate::subject;
use crate::weight::weigh;

/// Number of agents queried at once. With all at once, clock measurements would include the conductor's own queue.
const AT_ONCE: usize = 16;
/// Interval between checks that an agent is still present.
const LOOK: Duration = Duration::from_millis(200);
/// A closed connection that does not reopen within this time means that the program ended.
const RETURN_WITHIN: Duration = Duration::from_millis(1500);
/// How long to wait for a lost agent before the next trial.
const COMES_BACK_WITHIN: Duration = Duration::from_secs(20);
/// How long before a trial's time 0 agents are notified, or twenty times the longest round trip.
const NOTICE: Duration = Duration::from_secs(2);
/// Packets that may wait for the carrier; further ones are retransmitted.
const PACKETS: usize = 4096;

/// The agents of a run. Dropping the crew releases them.
pub struct Crew {
    conductor: Arc<Conductor>,
    run: Name,
    /// In the order of their parts of the load.
    members: Mutex<Vec<Arc<Member>>>,
    trials: AtomicU32,
    /// Whether they run the system and drive no load.
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
    /// Leases agents for a run and measures their clocks. The weights of agents in `weights` override those that the
    /// agents report.
    ///
    /// # Errors
    /// When they are unavailable: too few, of another version, or leased to another run.
    pub fn take(
        conductor: &Arc<Conductor>,
        wanted: &Wanted,
        weights: &[(Name, u32)],
    ) -> Result<Self, FleetError> {
        let chosen = conductor.choose(wanted)?;
        Self::of(conductor, chosen, weights, false)
    }

    /// Leases the agent for the system of a run's trials: by name, or the first free one with this label, `KEY=VALUE`.
    ///
    /// # Errors
    /// When there is none, or it allows no systems, has another version, or is leased to another run.
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
        let all = chosen.into_iter().zip(weights).collect();
        let (hired, refused) = crew.hire(all);
        // The crew releases these agents also if another is unavailable.
        lock(&crew.members).clone_from(&hired);
        refused.map_or(Ok(()), Err)?;
        crew.measure(hired)?;
        Ok(crew)
    }

    /// Returns its agents.
    pub fn agents(&self) -> impl Iterator<Item = Hello> {
        let members = self.members().into_iter();
        members.map(|member| member.hello.clone())
    }

    fn members(&self) -> Vec<Arc<Member>> {
        lock(&self.members).clone()
    }

    /// Runs a future for each agent, many at once; returns the results in their order.
    fn with_each<A, F>(&self, each: Vec<A>, what: impl Fn(A) -> F) -> Vec<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let each: Vec<F> = each.into_iter().map(what).collect();
        let all = stream::iter(each).buffered(AT_ONCE).collect();
        self.conductor.runner.wait(all)
    }

    fn hiring(&self) -> Hiring {
        Hiring::new(&self.conductor, &self.run, &self.over)
    }

    /// Leases agents with their parts; returns the leased ones, and the error of the first failure.
    fn hire(&self, agents: Vec<(Hello, u32)>) -> (Vec<Arc<Member>>, Option<FleetError>) {
        let hire = |(hello, weight)| self.hiring().hire(hello, weight);
        let (mut hired, mut refused) = (Vec::new(), None);
        for result in self.with_each(agents, hire) {
            match result {
                Ok(member) => hired.push(member),
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        (hired, refused)
    }

    /// Measures the clocks of agents.
    fn measure(&self, members: Vec<Arc<Member>>) -> Result<(), FleetError> {
        let measured = self.with_each(members, |member| self.hiring().measure(member));
        measured.into_iter().collect()
    }

    /// Waits for lost agents, which may have been restarted or be free again, and leases each anew for its slot.
    fn hire_again(&self, members: &mut [Arc<Member>]) -> Result<(), FleetError> {
        let until = clock::now() + COMES_BACK_WITHIN;
        loop {
            let lost = members.iter_mut().filter(|member| member.lost().is_some());
            let mut lost: Vec<&mut Arc<Member>> = lost.collect();
            if lost.is_empty() {
                return Ok(());
            }
            let there = self.conductor.agents();
            let (mut back, mut missing) = (Vec::new(), None);
            for member in &lost {
                match self.conductor.find(&there, &member.hello.name) {
                    Ok(hello) => back.push((hello, member.weight)),
                    Err(FleetError::Absent(name)) => {
                        missing = missing.or_else(|| gone(name, member))
                    }
                    Err(error) => missing = missing.or(Some(error)),
                }
            }
            let (hired, refused) = self.hire(back);
            for member in &hired {
                let place = lost
                    .iter_mut()
                    .find(|lost| lost.hello.name == member.hello.name);
                **place.expect("it was lost") = Arc::clone(member);
            }
            // Also if others are unavailable: the crew releases the agents in these slots.
            lock(&self.members).clone_from_slice(members);
            refused.map_or(Ok(()), Err)?;
            self.measure(hired)?;
            match missing {
                Some(error) if clock::now() >= until => return Err(error),
                _ => {}
            }
        }
    }

    /// Opens the next trial: each agent waits for its assignment.
    fn open_all(&self) -> Result<Vec<Peer>, FleetError> {
        let trial = self.trials.fetch_add(1, Ordering::Relaxed) + 1;
        let mut members = self.members();
        self.hire_again(&mut members)?;
        let open = |member: Arc<Member>| {
            let client = self.conductor.client.clone();
            let up = subject::up(&self.conductor.name, &self.run, &member.hello.name);
            open(client, up, self.opening(member.epoch, trial), member)
        };
        let opened = self.with_each(members.clone(), open);
        let peers = members.iter().zip(opened);
        peers
            .map(|(member, heard)| Ok(self.peer(member, trial, heard?)))
            .collect()
    }

    /// Returns the question that opens a trial.
    fn opening(&self, epoch: u64, trial: u32) -> Ask {
        match self.systems {
            true => Ask::System { epoch, trial },
            false => Ask::Open { epoch, trial },
        }
    }

    /// Returns an agent with an open trial as a generator of it.
    fn peer(&self, member: &Arc<Member>, trial: u32, heard: Subscriber) -> Peer {
        let (name, epoch) = (&member.hello.name, member.epoch);
        lock(&member.offsets).begin();
        *lock(&member.beat) = Beat::default();
        let ((into, reports), (orders, out)) = (way(), way());
        let (packets, came) = mpsc::channel(PACKETS);
        let ends = Ends {
            out,
            into: Some(into),
            packets: came,
        };
        let client = self.conductor.client.clone();
        let to = subject::down(name);
        let carrier = Carrier::new(client, to, (epoch, trial), DOWN);
        let seat = AgentPlace {
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
        Peer {
            orders: Box::new(Sink(orders, self.conductor.runner.handle())),
            reports: Box::new(Source(reports)),
            place: Box::new(seat),
            cores: member.hello.cores.clone(),
            // Its owner may run other programs on those cores.
            own_cores: false,
            weight: member.weight,
        }
    }
}

/// Opens a trial at an agent. Subscribes before its first packet can arrive.
async fn open(
    client: Client,
    up: String,
    ask: Ask,
    member: Arc<Member>,
) -> Result<Subscriber, FleetError> {
    let name = member.hello.name.clone();
    let fail = |why: String| FleetError::Agent {
        name: name.clone(),
        why,
    };
    if let Some(why) = member.lost() {
        return Err(fail(why));
    }
    let heard = client.subscribe(up).await;
    let heard = heard.map_err(|error| fail(error.to_string()))?;
    match question(&client, &name, &ask.for_one(&member.hello)).await? {
        Answer::Done => Ok(heard),
        Answer::Refused { why } => Err(fail(why)),
        _ => Err(fail("opens no trial".to_owned())),
    }
}

/// Returns why a lost agent is absent.
fn gone(name: Name, lost: &Member) -> Option<FleetError> {
    let why = lost.lost()?;
    let why = format!("{why}; it did not come back");
    Some(FleetError::Agent { name, why })
}

impl RemoteGenerators for Crew {
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
        // An agent that misses this is free when its lease expires.
        let _lapses = self.with_each(self.members(), |member| {
            let client = self.conductor.client.clone();
            let epoch = member.epoch;
            async move {
                let release = Ask::Release { epoch }.for_one(&member.hello);
                question(&client, &member.hello.name, &release).await
            }
        });
    }
}

/// Carries a trial's frames; an end before both streams end is a loss.
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
    /// When the last message from it arrived.
    sign: Duration,
    heard: Subscriber,
    packets: mpsc::Sender<Content>,
}

impl Watch {
    /// Forwards its packets until it is lost.
    async fn until_lost(mut self) {
        let why = self.why_lost().await;
        // Before the carrier is dropped: a reader then asks for the reason.
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
            // The last report of ended workers counts.
            if let Some(beat) = beat.filter(|beat| !beat.workers.is_empty()) {
                *lock(&self.member.beat) = beat;
            }
            return;
        }
        // The carrier ends earlier only with the trial.
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
        // A message sent earlier may be read after the notice that it left.
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
struct AgentPlace {
    client: Client,
    runner: tokio::runtime::Handle,
    member: Arc<Member>,
    trial: u32,
    /// Stops the carrier: no further message from the agent is expected.
    given_up: Arc<Notify>,
}

impl Place for AgentPlace {
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
        let longest = lock(&self.member.offsets).longest();
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
            // An agent that misses this stops when its lease expires.
            let _lapses = question(&client, &name, &drop).await;
        });
    }
}
