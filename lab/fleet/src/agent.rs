//! The agent process: sends greetings, grants its lease, and drives the trials of the lease holder. Its users stop when
//! messages from that run stop.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_nats::{Client, Message, Subscriber};
use futures_util::StreamExt;
use tokio::sync::{mpsc, watch};
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::clock;
use crate::connection::{Connected, Purpose, connect, say};
use crate::driving::{Driving, Ended, Part, Systems};
use crate::epoch;
use crate::error::FleetError;
use crate::lease::Lease;
use crate::machine;
use crate::message::{
    Answer, Ask, Content, Hello, NO_SYSTEMS, Packet, Question, Read, VERSION, decode, encode,
};
use crate::name::Name;
use crate::runner::Runner;
use crate::subject;
use crate::token::{Role, Token};

/// Interval between greetings.
const GREET: Duration = Duration::from_secs(1);
/// Interval between checks for an expired lease and for a stop request.
const LOOK: Duration = Duration::from_millis(100);
/// Interval between reports on the workers.
const BEAT: Duration = Duration::from_millis(500);
/// The maximum time for a trial's system to end before the agent exits: ten seconds each for the system and its
/// preparation command, the rest to restore the machine, its data last. systemd waits longer.
const ENDS_WITHIN: Duration = Duration::from_secs(60);
/// The maximum time to flush the last messages: the hub may already be gone.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What an agent is started with.
#[derive(Debug)]
pub struct AgentOptions {
    /// The agent's identity and the address of its hub.
    pub token: Token,
    /// The folder that stores the number of the last lease.
    pub state: PathBuf,
    /// Cores that the workers are pinned to, one worker each.
    pub cores: Vec<usize>,
    /// Weight of its part of the load; by default derived from its cores.
    pub weight: Option<u32>,
    /// Requests per second that its cores drive together, if measured.
    pub speed: Option<u32>,
    /// Manages systems of runs on this machine; `None` if its owner allows none.
    pub systems: Option<Systems>,
    /// Labels set by the agent's owner.
    pub labels: BTreeMap<String, String>,
    /// The program's version.
    pub program: String,
}

/// An event of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentEvent {
    /// The agent is connected to its hub.
    Joined,
    /// A run has leased the agent.
    Leased {
        /// Description of the lease holder.
        holder: String,
    },
    /// The agent drives the trial with this number in its lease.
    Began(u32),
    /// The agent has the system of the trial with this number in its lease.
    HasSystem(u32),
    /// The trial has ended, with or without an error.
    Ended {
        /// Number of the trial.
        trial: u32,
        /// Description of the error.
        wrong: Option<String>,
    },
    /// Messages from the lease holder stopped, so its users were stopped.
    Abandoned {
        /// Description of the lease holder.
        holder: String,
    },
    /// The agent received a stop request.
    Told,
}

/// Runs an agent until `interrupt` becomes true or it receives a stop request.
///
/// # Errors
/// When the hub is unreachable at the start, or refuses the agent at any time.
pub fn run_agent(
    options: AgentOptions,
    events: &mut dyn FnMut(AgentEvent),
    interrupt: &AtomicBool,
) -> Result<(), FleetError> {
    if options.token.role != Role::Agent {
        return Err(FleetError::Role(options.token.name, "a conductor"));
    }
    machine::raise_open_files();
    // On a separate thread, so that no other work delays a clock reply.
    let clocks = Runner::start("clock")?;
    let instance = crate::random::word();
    let (token, drawn) = (options.token.clone(), instance.clone());
    clocks.wait(async move {
        let connected = connect(&token, Purpose::Clocks).await?;
        tokio::spawn(tell_time(connected.client, token.name, drawn));
        Ok::<(), FleetError>(())
    })?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(FleetError::Thread)?;
    runtime.block_on(async {
        let agent = Agent::join(options, instance).await?;
        agent.run(events, interrupt).await
    })
}

/// Answers clock requests.
async fn tell_time(client: Client, name: Name, instance: String) {
    let Ok(mut asked) = client.subscribe(subject::clock(&name)).await else {
        return;
    };
    let boot_id = machine::boot_id();
    while let Some(message) = asked.next().await {
        let came = clock::nanos();
        let Some(reply) = message.reply else { continue };
        let read = Read {
            came,
            went: clock::nanos(),
            boot_id: boot_id.clone(),
            instance: instance.clone(),
        };
        // A caller without a reply asks again.
        let _unanswered = client.publish(reply, encode(&read).into()).await;
    }
}

struct Agent {
    options: AgentOptions,
    instance: String,
    client: Client,
    refused: watch::Receiver<bool>,
    lease: Lease,
    /// Description of the lease holder at the last check.
    worked_for: Option<String>,
    trial: Option<Driving>,
    /// Trials that have a system on this machine, or that may not have restored the machine yet.
    systems: usize,
    /// Trials whose generator has ended.
    ended: mpsc::Receiver<Ended>,
    tell_ended: mpsc::Sender<Ended>,
    told_to_stop: bool,
}

impl Agent {
    async fn join(options: AgentOptions, instance: String) -> Result<Self, FleetError> {
        let last = epoch::read(&options.state)?;
        let Connected { client, refused } = connect(&options.token, Purpose::Messages).await?;
        let (tell_ended, ended) = mpsc::channel(8);
        Ok(Self {
            options,
            instance,
            client,
            refused,
            lease: Lease::after(last),
            worked_for: None,
            trial: None,
            systems: 0,
            ended,
            tell_ended,
            told_to_stop: false,
        })
    }

    fn name(&self) -> &Name {
        &self.options.token.name
    }

    async fn run(
        mut self,
        events: &mut dyn FnMut(AgentEvent),
        interrupt: &AtomicBool,
    ) -> Result<(), FleetError> {
        let mut asked = self.subscribe(subject::ask(self.name())).await?;
        let mut down = self.subscribe(subject::down(self.name())).await?;
        events(AgentEvent::Joined);
        let (mut greet, mut look, mut beat) = (every(GREET), every(LOOK), every(BEAT));
        let mut cut_off = Ok(());
        while cut_off.is_ok() && !self.told_to_stop && !interrupt.load(Ordering::Relaxed) {
            tokio::select! {
                Some(message) = asked.next() => self.asked(message, events).await,
                Some(message) = down.next() => self.take(&message),
                Some(ended) = self.ended.recv() => self.over(ended, events),
                _ = greet.tick() => self.greet().await,
                _ = beat.tick() => self.beat().await,
                _ = look.tick() => cut_off = self.look(events),
            }
        }
        if let Some(trial) = self.trial.take() {
            self.say_gone(&trial, "its agent was ended").await;
        }
        self.await_systems(events).await;
        // Flushes the last reply.
        let _gone = timeout(LAST_WORDS, self.client.flush()).await;
        cut_off
    }

    /// Waits until all systems have ended and the machine is restored, also for trials that the run has ended and for
    /// expired leases.
    async fn await_systems(&mut self, events: &mut dyn FnMut(AgentEvent)) {
        let last = async {
            while self.systems > 0 {
                let Some(ended) = self.ended.recv().await else {
                    break;
                };
                self.over(ended, events);
            }
        };
        let _late = timeout(ENDS_WITHIN, last).await;
    }

    /// Handles the end of a trial on this machine.
    fn over(&mut self, ended: Ended, events: &mut dyn FnMut(AgentEvent)) {
        self.systems -= usize::from(ended.had_system);
        events(AgentEvent::Ended {
            trial: ended.trial,
            wrong: ended.wrong,
        });
    }

    async fn subscribe(&self, subject: String) -> Result<Subscriber, FleetError> {
        let subscribed = self.client.subscribe(subject).await;
        subscribed.map_err(|error| FleetError::Unreachable {
            url: self.options.token.url.clone(),
            why: error.to_string(),
        })
    }

    async fn greet(&self) {
        let holder = self.lease.holder(clock::now());
        let hello = Hello {
            name: self.name().clone(),
            versions: (VERSION, VERSION),
            program: self.options.program.clone(),
            instance: self.instance.clone(),
            boot_id: machine::boot_id(),
            host: machine::host(),
            cores: self.options.cores.clone(),
            memory_mb: machine::memory_mb(),
            weight: self.options.weight,
            speed: self.options.speed,
            systems: self.options.systems.is_some(),
            labels: self.options.labels.clone(),
            holder: holder.map(|held| format!("{}'s run {}", held.conductor, held.run)),
        };
        let subject = subject::hello(self.name());
        // The next greeting repeats the content.
        say(&self.client, subject, encode(&hello).into()).await;
    }

    async fn asked(&mut self, message: Message, events: &mut dyn FnMut(AgentEvent)) {
        let answer = match decode::<Question>(&message.payload) {
            Ok(asked) if !asked.instance.is_empty() && asked.instance != self.instance => return,
            Ok(asked) => self.answer(asked.ask, events),
            Err(error) => Answer::Refused {
                why: error.to_string(),
            },
        };
        if let Some(reply) = message.reply {
            // A caller without a reply asks again, and receives the same reply.
            let _unanswered = self.client.publish(reply, encode(&answer).into()).await;
        }
        if matches!(answer, Answer::Granted { .. }) {
            self.greet().await;
        }
    }

    fn answer(&mut self, ask: Ask, events: &mut dyn FnMut(AgentEvent)) -> Answer {
        let (now, millis) = (clock::now(), Duration::from_millis);
        match ask {
            Ask::Lease {
                conductor,
                run,
                ttl_ms,
            } => self.grant(&conductor, &run, millis(ttl_ms), events),
            Ask::Renew { epoch, ttl_ms } => self.lease.renew(epoch, millis(ttl_ms), now),
            Ask::Release { epoch } => {
                let answer = self.lease.release(epoch);
                if self.lease.holder(now).is_none() {
                    (self.trial, self.worked_for) = (None, None);
                }
                answer
            }
            Ask::Open { epoch, trial } => self.open(Part::Load, (epoch, trial), events),
            Ask::System { epoch, trial } => match self.options.systems.clone() {
                Some(systems) => self.open(Part::System(systems), (epoch, trial), events),
                None => Answer::Refused {
                    why: NO_SYSTEMS.to_owned(),
                },
            },
            Ask::Drop { epoch, trial } => {
                if self.trial.as_ref().is_some_and(|t| t.is(epoch, trial)) {
                    self.trial = None;
                }
                Answer::Done
            }
            Ask::Stop { force } => match self.lease.holder(now) {
                Some(held) if !force => Answer::Refused {
                    why: format!("works for {}'s run {}", held.conductor, held.run),
                },
                _ => {
                    events(AgentEvent::Told);
                    self.told_to_stop = true;
                    Answer::Done
                }
            },
        }
    }

    /// Stores a lease on disk before reporting it.
    fn grant(
        &mut self,
        conductor: &Name,
        run: &Name,
        ttl: Duration,
        events: &mut dyn FnMut(AgentEvent),
    ) -> Answer {
        let answer = self.lease.take(conductor, run, ttl, clock::now());
        let Answer::Granted { epoch } = answer else {
            return answer;
        };
        if let Err(error) = epoch::keep(&self.options.state, epoch) {
            self.lease.release(epoch);
            return Answer::Refused {
                why: format!("can't keep the number of its lease: {error}"),
            };
        }
        let holder = format!("{conductor}'s run {run}");
        if self.worked_for.as_ref() != Some(&holder) {
            events(AgentEvent::Leased {
                holder: holder.clone(),
            });
        }
        self.worked_for = Some(holder);
        answer
    }

    fn open(
        &mut self,
        part: Part,
        (epoch, number): (u64, u32),
        events: &mut dyn FnMut(AgentEvent),
    ) -> Answer {
        let refuse = |why: String| Answer::Refused { why };
        let Some(held) = self.lease.holder(clock::now()).cloned() else {
            return refuse("works for nobody: its lease is over".to_owned());
        };
        if !self.lease.obeys(epoch, clock::now()) {
            return refuse(format!("does not obey lease {epoch}, which is over"));
        }
        if self.trial.as_ref().is_some_and(|t| t.is(epoch, number)) {
            return Answer::Done;
        }
        let up = subject::up(&held.conductor, &held.run, self.name());
        let way = (self.client.clone(), up);
        let (event, systems) = match part {
            Part::Load => (AgentEvent::Began(number), 0),
            Part::System(_) => (AgentEvent::HasSystem(number), 1),
        };
        match Driving::begin(part, way, (epoch, number), self.tell_ended.clone()) {
            Ok(trial) => self.trial = Some(trial),
            Err(error) => return refuse(format!("can't begin: {error}")),
        }
        self.systems += systems;
        events(event);
        Answer::Done
    }

    /// Passes a packet to its trial. Packets of other trials are late or unknown, and are dropped.
    fn take(&mut self, message: &Message) {
        let Ok(packet) = Packet::decode(&message.payload) else {
            return;
        };
        if let Some(trial) = &self.trial
            && trial.is(packet.epoch, packet.trial)
        {
            trial.take(packet.content);
        }
    }

    async fn beat(&self) {
        if let Some(trial) = &self.trial {
            let beat = serde_json::to_vec(&machine::beat()).expect("a beat is JSON");
            trial.say(&self.client, Content::Beat(beat)).await;
        }
    }

    async fn say_gone(&self, trial: &Driving, why: &str) {
        let content = Content::Gone(why.as_bytes().to_vec());
        trial.say(&self.client, content).await;
    }

    /// The dead man's switch: stops the load when messages from the run stop.
    fn look(&mut self, events: &mut dyn FnMut(AgentEvent)) -> Result<(), FleetError> {
        if self.lease.holder(clock::now()).is_none() {
            let worked = self.trial.take().is_some();
            if let Some(holder) = self.worked_for.take().filter(|_| worked) {
                events(AgentEvent::Abandoned { holder });
            }
        }
        if *self.refused.borrow() {
            return Err(FleetError::Refused {
                url: self.options.token.url.clone(),
                name: self.name().clone(),
            });
        }
        Ok(())
    }
}

fn every(length: Duration) -> tokio::time::Interval {
    let mut interval = interval(length);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}
