//! The subjects that agents and conductors speak on, and who has which rights to them.
//!
//! | subject | from → to |
//! |---|---|
//! | `plimsoll.hello.AGENT` | agent → all, each second and on connect |
//! | `plimsoll.3.a.AGENT.ask` | conductor → agent: lease, open, stop; answered |
//! | `plimsoll.3.a.AGENT.clock` | conductor → agent: what its clock reads; answered, on a connection of its own |
//! | `plimsoll.3.a.AGENT.down` | conductor → agent: packets of a trial |
//! | `plimsoll.3.c.CONDUCTOR.RUN.AGENT.up` | agent → conductor: packets of a trial, beats |
//!
//! The greeting has no version in its subject: an agent of another version is to be seen, and refused
//! by its name.

use crate::name::Name;

/// Begins the subjects of this version of them. What is said there has a version of its own: a hub, which knows subjects
/// alone, need not be the newest.
const ROOT: &str = "plimsoll.3";

/// Where an agent greets.
pub(crate) fn hello(agent: &Name) -> String {
    format!("plimsoll.hello.{agent}")
}

/// All greetings.
pub(crate) const HELLOS: &str = "plimsoll.hello.*";

/// Where an agent is asked.
pub(crate) fn ask(agent: &Name) -> String {
    format!("{ROOT}.a.{agent}.ask")
}

/// Where an agent's clock is asked.
pub(crate) fn clock(agent: &Name) -> String {
    format!("{ROOT}.a.{agent}.clock")
}

/// Where packets to an agent go.
pub(crate) fn down(agent: &Name) -> String {
    format!("{ROOT}.a.{agent}.down")
}

/// Where an agent's packets to a run go.
pub(crate) fn up(conductor: &Name, run: &Name, agent: &Name) -> String {
    format!("{ROOT}.c.{conductor}.{run}.{agent}.up")
}

/// Begins the inboxes of a conductor.
pub(crate) fn inbox(conductor: &Name) -> String {
    format!("_INBOX.{conductor}")
}

/// What one may publish and subscribe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rights {
    pub(crate) publish: Vec<String>,
    pub(crate) subscribe: Vec<String>,
    /// May answer whoever asks it.
    pub(crate) answers: bool,
}

/// An agent speaks for itself, and hears what is for it.
pub(crate) fn of_agent(agent: &Name) -> Rights {
    Rights {
        publish: vec![hello(agent), format!("{ROOT}.c.*.*.{agent}.up")],
        subscribe: vec![format!("{ROOT}.a.{agent}.*")],
        answers: true,
    }
}

/// A conductor speaks to all agents, and hears what they say to it.
pub(crate) fn of_conductor(conductor: &Name) -> Rights {
    Rights {
        publish: vec![format!("{ROOT}.a.*.*")],
        subscribe: vec![
            HELLOS.to_owned(),
            format!("{ROOT}.c.{conductor}.*.*.up"),
            format!("{}.>", inbox(conductor)),
        ],
        answers: false,
    }
}
