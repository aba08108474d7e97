//! Warnings about a trial apart from its figures, in sentences.

use std::collections::BTreeMap;

use lab_archive::{Agent, TrialEnvironment, TrialRecord, Warning};

use crate::format::{first_few, plural_count};

/// Returns the recorded sentences, then those of the notes.
pub(crate) fn sentences(record: &TrialRecord) -> Vec<String> {
    let noted = record.warnings.iter();
    let noted = noted.filter_map(|noted| sentence(noted, &record.environment));
    record.notes.iter().cloned().chain(noted).collect()
}

/// Returns why a script failed the test.
pub(crate) fn test_failed(record: &TrialRecord) -> Option<String> {
    record.warnings.iter().find_map(|noted| match noted {
        Warning::TestFailed { reason } => Some(reason.clone()),
        _ => None,
    })
}

/// Returns the numbers of values that are in no figure, by name.
pub(crate) fn not_counted(record: &TrialRecord) -> BTreeMap<String, u64> {
    let noted = record.warnings.iter().filter_map(|noted| match noted {
        Warning::NotCounted { name, values } => Some((name.clone(), *values)),
        _ => None,
    });
    noted.collect()
}

/// Returns a note as text; `None` if the environment lacks its subject.
fn sentence(noted: &Warning, around: &TrialEnvironment) -> Option<String> {
    Some(match noted {
        Warning::NotPinned => {
            "The system is not pinned: it is attached to, and on whatever cores it is.".to_owned()
        }
        Warning::SharedCore => "The generator and the system share a core.".to_owned(),
        Warning::PutBack { threads, cores } => {
            format!(
                "{threads} threads of the system had left its cores and were put back on {cores}."
            )
        }
        Warning::KernelMade {
            name,
            wanted,
            in_force,
        } => format!("The kernel made {in_force} of {wanted} for {name}."),
        Warning::LatencyAsked {
            name,
            wanted,
            in_force,
        } => format!("Another program asked for {in_force}, not {wanted}: {name}."),
        Warning::DrivenByAgents => driven_by(&around.agents)?,
        Warning::RanElsewhere { part } => ran_on(part.as_deref(), around)?,
        Warning::NotWatched { port } => format!(
            "The agent found no process that listens on port {port} of its machine and that it may watch: the system \
             is not looked after, and has no counters of its own. Name its `pid`, or start the agent as its user."
        ),
        Warning::ExporterMissed {
            server,
            asked,
            missing,
            problem,
        } => missed(server, (*asked, *missing), problem),
        Warning::HoldTooShort => {
            "The hold was too short to judge the generator by its CPU.".to_owned()
        }
        Warning::HardlyRead { read_ms, held_ms } => format!(
            "The generator's CPU was read over {:.1} s of the {:.1} s of the hold, which is too little to judge it \
             by: whoever reads it had no CPU.",
            seconds(*read_ms),
            seconds(*held_ms)
        ),
        Warning::WaitsUnknown => {
            "This kernel does not tell how long the generator waited for a core.".to_owned()
        }
        Warning::SequenceCut { begun, sessions } => format!(
            "The sequence was cut by the end of its time: {begun} of {sessions} sessions were begun."
        ),
        Warning::RequestTimeout { after_us, bounds } => timeout(*after_us, *bounds),
        Warning::NotProfiled { problem } => format!("The system isn't profiled: {problem}."),
        Warning::TestFailed { reason } => format!("The script failed the test: {reason}."),
        Warning::NotCounted { name, values } => uncounted(name, *values),
        Warning::Newer => {
            "Something is noted that this version does not know; the one that ran the trial does."
                .to_owned()
        }
    })
}

fn driven_by(agents: &[Agent]) -> Option<String> {
    let named = agents.iter().map(|agent| {
        let workers = plural_count(agent.workers.into(), "worker");
        format!("{} on {} ({workers})", agent.name, agent.host)
    });
    let named: Vec<String> = named.collect();
    (!named.is_empty()).then(|| format!("The load was driven by agents: {}.", first_few(&named)))
}

fn ran_on(part: Option<&str>, around: &TrialEnvironment) -> Option<String> {
    let agent = match part {
        None => around.system_agent.as_ref(),
        Some(name) => {
            let part = around.parts.iter().find(|part| part.name == name);
            part.and_then(|part| part.agent.as_ref())
        }
    }?;
    let what = part.unwrap_or("The system");
    Some(format!(
        "{what} ran on {}, by agent {}.",
        agent.host, agent.name
    ))
}

fn uncounted(name: &str, values: u64) -> String {
    match name.strip_prefix("check: ") {
        Some(check) => format!(
            "{} of the check “{check}” are not in its figures: its name is computed, or it failed in `setup`.",
            plural_count(values, "result")
        ),
        None => format!(
            "{} of “{name}” are in no figure: they are outside of 0 to 10¹², or were added in `setup` or \
             `teardown`, or the name is computed.",
            plural_count(values, "value")
        ),
    }
}

fn missed(server: &str, (asked, missing): (u64, u64), problem: &str) -> String {
    if asked == 0 {
        return format!("The node_exporter at {server} did not answer in time.");
    }
    format!(
        "{missing} of {asked} answers of the node_exporter at {server} are missing, and so are the host's counters \
         of those moments: {problem}."
    )
}

fn timeout(after_us: u64, bounds: bool) -> String {
    let after = after_us as f64 / 1e6;
    if bounds {
        return format!(
            "An operation that takes over {after} s is given up: its step has a bound instead of times, and is not \
             repeated any further in that session."
        );
    }
    format!("A request that takes over {after} s is a timeout, an error.")
}

fn seconds(ms: u64) -> f64 {
    ms as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use lab_archive::SystemPart;

    use super::*;

    fn agent(name: &str, workers: u32) -> Agent {
        Agent {
            name: name.to_owned(),
            host: "rack".to_owned(),
            workers,
            ..Agent::default()
        }
    }

    #[test]
    fn agents_are_named() {
        let around = TrialEnvironment {
            agents: vec![agent("ada", 1), agent("bob", 2)],
            system_agent: Some(agent("app", 1)),
            parts: vec![SystemPart {
                name: "db".to_owned(),
                agent: Some(agent("rows", 1)),
                ..SystemPart::default()
            }],
            ..TrialEnvironment::default()
        };
        let ran = |part: Option<&str>| Warning::RanElsewhere {
            part: part.map(str::to_owned),
        };
        for (noted, says) in [
            (
                Warning::DrivenByAgents,
                "The load was driven by agents: ada on rack (1 worker), bob on rack (2 workers).",
            ),
            (ran(None), "The system ran on rack, by agent app."),
            (ran(Some("db")), "db ran on rack, by agent rows."),
        ] {
            assert_eq!(sentence(&noted, &around).as_deref(), Some(says));
            assert_eq!(sentence(&noted, &TrialEnvironment::default()), None);
        }
        assert_eq!(sentence(&ran(Some("cache")), &around), None);
    }

    #[test]
    fn lengths_are_in_seconds() {
        let read = Warning::HardlyRead {
            read_ms: 2000,
            held_ms: 20_000,
        };
        let read = sentence(&read, &TrialEnvironment::default()).unwrap();
        assert!(read.contains("2.0 s of the 20.0 s"), "{read}");
        let expected = "A request that takes over 6.25 s is a timeout, an error.";
        assert_eq!(timeout(6_250_000, false), expected);
        assert!(timeout(300_000_000, true).starts_with("An operation that takes over 300 s is"));
    }

    #[test]
    fn answers_that_are_missing_say_how_many() {
        let none = missed("db:9100", (0, 0), "");
        assert_eq!(none, "The node_exporter at db:9100 did not answer in time.");
        let some = missed("db:9100", (10, 3), "no route");
        assert!(some.starts_with("3 of 10 answers"), "{some}");
        assert!(some.ends_with("of those moments: no route."), "{some}");
    }
}
