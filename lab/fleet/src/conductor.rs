//! A run's side of a fleet: the available agents, their leases, and their clocks.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::Client;
use futures_util::StreamExt;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::clock;
use crate::connection::{Purpose, connect};
use crate::error::FleetError;
use crate::message::{
    Answer, Ask, Hello, NO_SYSTEMS, Question, VERSION, decode, decode_hello, encode,
};
use crate::name::Name;
use crate::runner::Runner;
use crate::subject;
use crate::token::{Role, Token};

/// Time to collect greetings: each available agent sends one per second.
const LISTEN: Duration = Duration::from_millis(1500);
/// How long a greeting may still be in flight after its agent has left.
const STRAGGLES: Duration = Duration::from_millis(700);
/// An agent without a greeting for this long is absent.
const GREETED_WITHIN: Duration = Duration::from_secs(3);

/// Selects the agents of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// This many free agents, in the order of their names.
    Any(usize),
    /// Exactly these agents.
    Named(Vec<Name>),
    /// Agents with this label.
    Labelled {
        /// Name of the label.
        label: String,
        /// Value of the label.
        value: String,
        /// Number of agents; all if `None`.
        count: Option<usize>,
    },
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any(count) => write!(f, "{count}"),
            Self::Named(names) => {
                let names: Vec<&str> = names.iter().map(Name::as_str).collect();
                f.write_str(&names.join(","))
            }
            Self::Labelled {
                label,
                value,
                count: None,
            } => write!(f, "{label}={value}"),
            Self::Labelled {
                label,
                value,
                count: Some(count),
            } => write!(f, "{count} with {label}={value}"),
        }
    }
}

/// What is known about one agent.
#[derive(Debug, Clone)]
pub(crate) struct AgentState {
    pub(crate) hello: Hello,
    pub(crate) at: Duration,
    /// When its connection was closed, if no greeting followed.
    pub(crate) left: Option<Duration>,
}

/// All known agents.
#[derive(Debug, Clone, Default)]
pub(crate) struct Roster(Arc<Mutex<BTreeMap<Name, AgentState>>>);

impl Roster {
    pub(crate) fn lock(&self) -> MutexGuard<'_, BTreeMap<Name, AgentState>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a greeting.
    fn greeted(&self, hello: Hello, at: Duration) {
        let mut all = self.lock();
        let before = all.get(&hello.name);
        // Its last greeting may be read after the notice that it left.
        let left = before.filter(|before| before.hello.instance == hello.instance);
        let left = left.and_then(|before| before.left);
        let left = left.filter(|left| at < *left + STRAGGLES);
        all.insert(hello.name.clone(), AgentState { hello, at, left });
    }

    fn left(&self, name: &Name, at: Duration) {
        if let Some(heard) = self.lock().get_mut(name) {
            heard.left = Some(at);
        }
    }

    fn present(&self, now: Duration) -> Vec<Hello> {
        let heard = self.lock();
        let fresh = heard
            .values()
            .filter(|heard| now < heard.at + GREETED_WITHIN);
        fresh.map(|heard| heard.hello.clone()).collect()
    }
}

/// A connection to a fleet for running studies.
pub struct Conductor {
    pub(crate) name: Name,
    /// This program's version, which its agents must share.
    pub(crate) program: String,
    pub(crate) client: Client,
    pub(crate) clocks: Client,
    pub(crate) roster: Roster,
    pub(crate) runner: Runner,
}

impl Conductor {
    /// Connects, with `program` as the version that agents must have.
    ///
    /// # Errors
    /// When the hub is unreachable or refuses the token.
    pub fn connect(token: &Token, program: &str) -> Result<Self, FleetError> {
        if token.role != Role::Conductor {
            return Err(FleetError::Role(token.name.clone(), "an agent"));
        }
        let runner = Runner::start("fleet")?;
        let (roster, own) = (Roster::default(), token.clone());
        let hears = roster.clone();
        let (client, clocks) = runner.wait(async move {
            let client = connect(&own, Purpose::Messages).await?.client;
            let clocks = connect(&own, Purpose::Clocks).await?.client;
            hear_greetings(&own, &client, hears.clone()).await?;
            if own.watch.is_some() {
                hear_departures(&own, hears).await?;
            }
            Ok::<_, FleetError>((client, clocks))
        })?;
        Ok(Self {
            name: token.name.clone(),
            program: program.to_owned(),
            client,
            clocks,
            roster,
            runner,
        })
    }

    /// Returns all available agents, ordered by name. Takes 1.5 seconds.
    #[must_use]
    pub fn agents(&self) -> Vec<Hello> {
        self.runner.wait(async { tokio::time::sleep(LISTEN).await });
        self.roster.present(clock::now())
    }

    /// Returns the agents that a run would take now.
    ///
    /// # Errors
    /// When they are unavailable: too few, of another version, or leased to another run.
    pub fn choose(&self, wanted: &Wanted) -> Result<Vec<Hello>, FleetError> {
        choose(&self.agents(), wanted, &self.program)
    }

    /// Returns one of the available agents, if a run could take it.
    pub(crate) fn find(&self, there: &[Hello], name: &Name) -> Result<Hello, FleetError> {
        let mut chosen = choose(there, &Wanted::Named(vec![name.clone()]), &self.program)?;
        chosen.pop().ok_or_else(|| FleetError::Absent(name.clone()))
    }

    /// Returns the agent that would have a run's system.
    ///
    /// # Errors
    /// When there is none, or it allows no systems, has another version, or is leased to another run.
    pub fn choose_system(&self, on: &str) -> Result<Hello, FleetError> {
        choose_system(&self.agents(), on, &self.program)
    }

    /// Requests an agent to end; a leased agent ends only with `force`.
    ///
    /// # Errors
    /// When the agent is absent or refuses.
    pub fn stop(&self, agent: &Name, force: bool) -> Result<(), FleetError> {
        let ask = Ask::Stop { force };
        let answer = self.ask(agent, ask.for_any())?;
        match answer {
            Answer::Refused { why } => Err(FleetError::Agent {
                name: agent.clone(),
                why,
            }),
            _ => Ok(()),
        }
    }

    /// Sends a question to an agent, and waits for the answer.
    pub(crate) fn ask(&self, agent: &Name, asked: Question) -> Result<Answer, FleetError> {
        let (client, agent) = (self.client.clone(), agent.clone());
        self.runner
            .wait(async move { question(&client, &agent, &asked).await })
    }
}

async fn hear_greetings(token: &Token, client: &Client, roster: Roster) -> Result<(), FleetError> {
    let mut hellos = subscribe(token, client, subject::HELLOS).await?;
    tokio::spawn(async move {
        while let Some(message) = hellos.next().await {
            // The hub vouches for the subject.
            let own = |hello: &Hello| message.subject.as_str() == subject::hello(&hello.name);
            if let Some(hello) = decode_hello(&message.payload).ok().filter(own) {
                roster.greeted(hello, clock::now());
            }
        }
    });
    Ok(())
}

/// Receives the hub's notices about closed connections, which it sends at once, also for killed programs.
async fn hear_departures(token: &Token, roster: Roster) -> Result<(), FleetError> {
    let watch = connect(token, Purpose::Departures).await?.client;
    let mut departures = subscribe(token, &watch, "$SYS.ACCOUNT.*.DISCONNECT").await?;
    tokio::spawn(async move {
        // Keeps the connection open while the subscription is read.
        let _watch = watch;
        while let Some(message) = departures.next().await {
            if let Some(name) = departed(&message.payload) {
                roster.left(&name, clock::now());
            }
        }
    });
    Ok(())
}

/// Returns the name of the closed connection's client. A client that only went silent may return. When a program is
/// killed with unread data, its kernel resets the connection instead of closing it.
fn departed(payload: &[u8]) -> Option<Name> {
    let event: serde_json::Value = serde_json::from_slice(payload).ok()?;
    let name = event["client"]["name"].as_str()?.strip_suffix(" talk")?;
    let ended = ["Client Closed", "Read Error", "Write Error"];
    let has_ended = event["reason"]
        .as_str()
        .is_some_and(|reason| ended.contains(&reason));
    name.parse().ok().filter(|_| has_ended)
}

async fn subscribe(
    token: &Token,
    client: &Client,
    subject: &str,
) -> Result<async_nats::Subscriber, FleetError> {
    let subscribed = client.subscribe(subject.to_owned()).await;
    subscribed.map_err(|error| FleetError::Unreachable {
        url: token.url.clone(),
        why: error.to_string(),
    })
}

/// Sends a question to an agent, up to three times without an answer: the agent gives the same answer each time.
pub(crate) async fn question(
    client: &Client,
    agent: &Name,
    asked: &Question,
) -> Result<Answer, FleetError> {
    let mut tries = 3;
    loop {
        tries -= 1;
        match answered(client, subject::ask(agent), asked).await {
            Ok(answer) => return Ok(answer),
            Err(why) if tries == 0 => {
                let name = agent.clone();
                return Err(FleetError::Agent { name, why });
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(200)).await,
        }
    }
}

/// Sends one question and returns the answer, or a description of the failure.
pub(crate) async fn answered<A: DeserializeOwned>(
    client: &Client,
    subject: String,
    ask: &impl serde::Serialize,
) -> Result<A, String> {
    let request = client.request(subject, encode(ask).into());
    let answer = timeout(Duration::from_secs(3), request).await;
    match answer {
        Ok(Ok(message)) => decode(&message.payload).map_err(|error| error.to_string()),
        Ok(Err(error)) if error.kind() == async_nats::RequestErrorKind::NoResponders => {
            Err("is not there".to_owned())
        }
        Ok(Err(_)) | Err(_) => Err("does not answer".to_owned()),
    }
}

/// Chooses agents, or reports by name why one is unavailable.
fn choose(there: &[Hello], wanted: &Wanted, program: &str) -> Result<Vec<Hello>, FleetError> {
    match wanted {
        Wanted::Any(count) => some(there, *count, "", program),
        Wanted::Named(names) => {
            let of = |name: &Name| there.iter().find(|hello| hello.name == *name);
            let found = |name: &Name| of(name).cloned().ok_or(FleetError::Absent(name.clone()));
            let chosen: Vec<Hello> = names.iter().map(found).collect::<Result<_, _>>()?;
            all_fit(chosen, program)
        }
        Wanted::Labelled {
            label,
            value,
            count,
        } => {
            let has = |hello: &&Hello| hello.labels.get(label) == Some(value);
            let chosen: Vec<Hello> = there.iter().filter(has).cloned().collect();
            if let Some(count) = count {
                return some(&chosen, *count, &format!(" with {label}={value}"), program);
            }
            if chosen.is_empty() {
                return Err(FleetError::TooFew {
                    wanted: 1,
                    which: format!(" with {label}={value}"),
                    found: 0,
                    why: String::new(),
                });
            }
            all_fit(chosen, program)
        }
    }
}

/// Chooses the agent for a system, or reports why there is none.
fn choose_system(there: &[Hello], on: &str, program: &str) -> Result<Hello, FleetError> {
    let Some((label, value)) = on.split_once('=') else {
        let named = Wanted::Named(vec![on.parse()?]);
        let mut chosen = choose(there, &named, program)?;
        let agent = chosen.pop().filter(|hello| hello.systems);
        return agent.ok_or_else(|| FleetError::Agent {
            name: on.parse().expect("it was a name before"),
            why: NO_SYSTEMS.to_owned(),
        });
    };
    let has = |hello: &&Hello| {
        hello.systems && hello.labels.get(label).map(String::as_str) == Some(value)
    };
    let with: Vec<Hello> = there.iter().filter(has).cloned().collect();
    let mut chosen = some(&with, 1, &format!(" for a system, with {on},"), program)?;
    Ok(chosen.remove(0))
}

/// Chooses this many free agents.
fn some(of: &[Hello], count: usize, which: &str, program: &str) -> Result<Vec<Hello>, FleetError> {
    let fits = |hello: &&Hello| unfit(hello, program).is_none();
    let chosen: Vec<Hello> = of.iter().filter(fits).take(count).cloned().collect();
    if chosen.len() == count && count > 0 {
        return Ok(chosen);
    }
    Err(FleetError::TooFew {
        wanted: count,
        which: which.to_owned(),
        found: chosen.len(),
        why: others(of, program),
    })
}

fn all_fit(chosen: Vec<Hello>, program: &str) -> Result<Vec<Hello>, FleetError> {
    let unfit = chosen.iter().find_map(|hello| {
        let name = hello.name.clone();
        unfit(hello, program).map(|why| FleetError::Agent { name, why })
    });
    unfit.map_or(Ok(chosen), Err)
}

/// Returns why an agent is unusable.
fn unfit(hello: &Hello, program: &str) -> Option<String> {
    let (first, last) = hello.versions;
    if !(first..=last).contains(&VERSION) || hello.program != program {
        return Some(format!(
            "is plimsoll {} (messages {first} to {last}), and this is {program} (messages {VERSION}): \
             install the same version on both machines",
            hello.program
        ));
    }
    hello
        .holder
        .as_ref()
        .map(|holder| format!("works for {holder}"))
}

fn others(there: &[Hello], program: &str) -> String {
    let unfit = there.iter().filter_map(|hello| {
        let why = unfit(hello, program)?;
        Some(format!("; {} {why}", hello.name))
    });
    unfit.collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn hello(name: &str) -> Hello {
        Hello {
            name: name.parse().unwrap(),
            versions: (VERSION, VERSION),
            program: "1.0.0".to_owned(),
            instance: String::new(),
            boot_id: String::new(),
            host: String::new(),
            cores: vec![0],
            memory_mb: 1,
            weight: None,
            speed: None,
            systems: false,
            labels: BTreeMap::from([("dc".to_owned(), name[..1].to_owned())]),
            holder: None,
        }
    }

    fn chosen(there: &[Hello], wanted: &Wanted) -> Result<Vec<String>, String> {
        let chosen = choose(there, wanted, "1.0.0").map_err(|error| error.to_string())?;
        Ok(chosen.into_iter().map(|hello| hello.name.into()).collect())
    }

    #[test]
    fn agents_are_refused_by_their_names() {
        let mut there = vec![hello("ada"), hello("bob"), hello("eve")];
        let any = |n| Wanted::Any(n);
        assert_eq!(chosen(&there, &any(2)).unwrap(), ["ada", "bob"]);
        there[0].holder = Some("me's run r".to_owned());
        assert_eq!(chosen(&there, &any(2)).unwrap(), ["bob", "eve"]);
        there[1].versions = (5, 6);
        "2.0.0".clone_into(&mut there[1].program);
        let expected = "2 agents are wanted, and 1 can be had; ada works for me's run r; bob is \
                        plimsoll 2.0.0 (messages 5 to 6), and this is 1.0.0 (messages 10): install \
                        the same version on both machines";
        assert_eq!(chosen(&there, &any(2)).unwrap_err(), expected);
        let named = |names: &[&str]| {
            Wanted::Named(names.iter().map(|name| name.parse().unwrap()).collect())
        };
        assert_eq!(chosen(&there, &named(&["eve"])).unwrap(), ["eve"]);
        let error = chosen(&there, &named(&["ada"])).unwrap_err();
        assert_eq!(error, "agent ada works for me's run r");
        let error = chosen(&there, &named(&["joe"])).unwrap_err();
        assert_eq!(
            error,
            "agent joe is not there: start it with `plimsoll agent`"
        );
        let label = |value: &str, count| Wanted::Labelled {
            label: "dc".to_owned(),
            value: value.to_owned(),
            count,
        };
        assert_eq!(chosen(&there, &label("e", None)).unwrap(), ["eve"]);
        assert_eq!(chosen(&there, &label("e", Some(1))).unwrap(), ["eve"]);
        let error = chosen(&there, &label("x", None)).unwrap_err();
        assert!(error.contains("dc=x"), "{error}");
        let error = chosen(&there, &label("a", Some(2))).unwrap_err();
        let expected = "2 agents with dc=a are wanted, and 0 can be had; ada works for me's run r";
        assert_eq!(error, expected);
    }

    #[test]
    fn a_system_goes_where_its_owner_lets_it() {
        let mut there = vec![hello("ada"), hello("bob"), hello("bea")];
        let chosen = |there: &[Hello], on: &str| {
            let chosen = choose_system(there, on, "1.0.0").map_err(|error| error.to_string());
            chosen.map(|hello| String::from(hello.name))
        };
        let error = chosen(&there, "bob").unwrap_err();
        assert!(error.starts_with("agent bob has no systems"), "{error}");
        there[1].systems = true;
        assert_eq!(chosen(&there, "bob").unwrap(), "bob");
        assert_eq!(chosen(&there, "dc=b").unwrap(), "bob");
        assert!(chosen(&there, "dc=a").is_err() && chosen(&there, "joe").is_err());
        there[2].systems = true;
        there[1].holder = Some("me's run r".to_owned());
        assert_eq!(chosen(&there, "dc=b").unwrap(), "bea");
        assert!(chosen(&there, "bob").unwrap_err().contains("me's run r"));
    }

    #[test]
    fn only_a_connection_that_has_ended_says_that_its_agent_left() {
        let event = |name: &str, reason: &str| {
            let text = format!(r#"{{"client":{{"name":"{name}"}},"reason":"{reason}"}}"#);
            departed(text.as_bytes()).map(String::from)
        };
        assert_eq!(event("ada talk", "Client Closed").as_deref(), Some("ada"));
        assert_eq!(event("ada talk", "Read Error").as_deref(), Some("ada"));
        assert_eq!(event("ada clocks", "Client Closed"), None);
        assert_eq!(event("ada talk", "Stale Connection"), None);
        assert_eq!(departed(b"{}"), None);
    }
}
