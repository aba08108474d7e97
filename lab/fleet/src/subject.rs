//! The subjects of agents and conductors, and the rights to them.
//!
//! | subject | from → to |
//! |---|---|
//! | `plimsoll.hello.AGENT` | agent → all, each second and on connect |
//! | `plimsoll.3.a.AGENT.ask` | conductor → agent: lease, open, stop; answered |
//! | `plimsoll.3.a.AGENT.clock` | conductor → agent: clock reading; answered, on a separate connection |
//! | `plimsoll.3.a.AGENT.down` | conductor → agent: packets of a trial |
//! | `plimsoll.3.c.CONDUCTOR.RUN.AGENT.up` | agent → conductor: packets of a trial, beats |
//!
//! The greeting has no version in its subject, so that an agent of another version is visible, and refused by name.

use crate::name::Name;

/// Prefix of this version of the subjects. Messages have their own version: a hub, which only knows subjects, need not
/// be the newest.
const ROOT: &str = "plimsoll.3";

/// Returns the subject of an agent's greetings.
pub(crate) fn hello(agent: &Name) -> String {
    format!("plimsoll.hello.{agent}")
}

/// All greetings.
pub(crate) const HELLOS: &str = "plimsoll.hello.*";

/// Returns the subject of questions to an agent.
pub(crate) fn ask(agent: &Name) -> String {
    format!("{ROOT}.a.{agent}.ask")
}

/// Returns the subject of questions to an agent's clock.
pub(crate) fn clock(agent: &Name) -> String {
    format!("{ROOT}.a.{agent}.clock")
}

/// Returns the subject of packets to an agent.
pub(crate) fn down(agent: &Name) -> String {
    format!("{ROOT}.a.{agent}.down")
}

/// Returns the subject of an agent's packets to a run.
pub(crate) fn up(conductor: &Name, run: &Name, agent: &Name) -> String {
    format!("{ROOT}.c.{conductor}.{run}.{agent}.up")
}

/// Returns the prefix of a conductor's inboxes.
pub(crate) fn inbox(conductor: &Name) -> String {
    format!("_INBOX.{conductor}")
}

/// The subjects that a client may publish and subscribe to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rights {
    pub(crate) publish: Vec<String>,
    pub(crate) subscribe: Vec<String>,
    /// May reply to questions.
    pub(crate) answers: bool,
}

/// An agent publishes under its own name, and subscribes to subjects addressed to it.
pub(crate) fn of_agent(agent: &Name) -> Rights {
    Rights {
        publish: vec![hello(agent), format!("{ROOT}.c.*.*.{agent}.up")],
        subscribe: vec![format!("{ROOT}.a.{agent}.*")],
        answers: true,
    }
}

/// A conductor publishes to all agents, and subscribes to subjects addressed to it.
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
