//! Whether a plan fits this machine, said in words before anything starts. Judges no measurement.

use std::fmt;

use lab_study::SystemSpec;
use lab_study::plan::{Plan, Trial};

use crate::machine::Limits;

/// Open files beside the users' connections: listeners, the store, the archive, libraries.
const FILE_RESERVE: u64 = 200;
/// Memory of one virtual user with its connection, as measured at 15,000 users, rounded up.
const USER_BYTES: u64 = 20 << 10;
/// Records of one user with its calendar, indexes and write-ahead log included.
const USER_DISK_BYTES: u64 = 64 << 10;
/// The archive and the write-ahead log of an idle store.
const DISK_RESERVE: u64 = 256 << 20;

/// A trial that this machine can't hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Its number in the plan.
    pub trial: u32,
    /// Its users.
    pub users: u32,
    /// What it exceeds.
    pub excess: Excess,
}

/// What a trial needs more of than there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Excess {
    /// Files that one process may open.
    OpenFiles {
        /// The hard limit.
        limit: u64,
    },
    /// Ports for outgoing connections.
    Ports {
        /// Ports in the range.
        limit: u64,
    },
    /// Memory of the generator.
    Memory {
        /// Bytes needed.
        needed: u64,
        /// Bytes available.
        available: u64,
    },
    /// Space for the system's data and the archive.
    Disk {
        /// Bytes needed.
        needed: u64,
        /// Bytes available.
        available: u64,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            trial,
            users,
            excess,
        } = self;
        write!(f, "trial {trial} has {users} users: ")?;
        match *excess {
            Excess::OpenFiles { limit } => write!(
                f,
                "each needs an open file of its own in the generator and one in the system under \
                 test, and a process may have {limit} here, {FILE_RESERVE} of them for other \
                 purposes; at most {} users fit (raise `ulimit -Hn`)",
                limit.saturating_sub(FILE_RESERVE)
            ),
            Excess::Ports { limit } => write!(
                f,
                "each needs a port for its connection, and there are {limit}, {FILE_RESERVE} of \
                 them kept for other programs; at most {} users fit (widen \
                 net.ipv4.ip_local_port_range)",
                limit.saturating_sub(FILE_RESERVE)
            ),
            Excess::Memory { needed, available } => write!(
                f,
                "the generator needs {} of memory for them, {} KB each, and {} are available",
                size(needed),
                USER_BYTES >> 10,
                size(available)
            ),
            Excess::Disk { needed, available } => write!(
                f,
                "their data needs up to {} on the disk of the run's folder, and {} are free",
                size(needed),
                size(available)
            ),
        }
    }
}

/// Three digits are plenty for a limit.
fn size(bytes: u64) -> String {
    if bytes >= 10 << 30 {
        return format!("{} GB", bytes >> 30);
    }
    format!("{} MB", bytes >> 20)
}

/// All that the plan needs more of than there is; one entry per cause, of the largest trial.
pub(crate) fn check(plan: &Plan, limits: &Limits) -> Vec<Problem> {
    let mut problems: Vec<Problem> = Vec::new();
    let mut trials: Vec<&Trial> = plan.trials.iter().collect();
    trials.sort_by_key(|trial| (std::cmp::Reverse(trial.load.users), trial.id));
    for trial in trials {
        for excess in excesses(trial, limits) {
            let same =
                |p: &Problem| std::mem::discriminant(&p.excess) == std::mem::discriminant(&excess);
            if !problems.iter().any(same) {
                problems.push(Problem {
                    trial: trial.id,
                    users: trial.load.users,
                    excess,
                });
            }
        }
    }
    problems
}

fn excesses(trial: &Trial, limits: &Limits) -> impl Iterator<Item = Excess> + use<> {
    let users = u64::from(trial.load.users);
    let pad = match &trial.system {
        SystemSpec::Groupware(spec) => spec.mailbox_pad_bytes,
        _ => 0,
    };
    let memory = users.saturating_mul(USER_BYTES);
    let disk = users
        .saturating_mul(USER_DISK_BYTES.saturating_add(pad))
        .saturating_add(DISK_RESERVE);
    let files = users > limits.open_files.saturating_sub(FILE_RESERVE);
    let ports = users > limits.ports.saturating_sub(FILE_RESERVE);
    let when = |is: bool, excess: Excess| is.then_some(excess);
    [
        when(
            files,
            Excess::OpenFiles {
                limit: limits.open_files,
            },
        ),
        when(
            ports,
            Excess::Ports {
                limit: limits.ports,
            },
        ),
        when(
            memory > limits.memory_bytes,
            Excess::Memory {
                needed: memory,
                available: limits.memory_bytes,
            },
        ),
        when(
            disk > limits.disk_bytes,
            Excess::Disk {
                needed: disk,
                available: limits.disk_bytes,
            },
        ),
    ]
    .into_iter()
    .flatten()
}

#[cfg(test)]
mod tests {
    use lab_study::GroupwareSpec;
    use lab_study::plan::LoadSpec;

    use super::*;

    fn plan(users: &[u32], pad: u64) -> Plan {
        let trial = |(id, users): (u32, &u32)| {
            let spec = GroupwareSpec {
                mailbox_pad_bytes: pad,
                ..GroupwareSpec::default()
            };
            Trial {
                id,
                block: 0,
                cell: Default::default(),
                control: false,
                parameters: Default::default(),
                system: SystemSpec::Groupware(spec),
                host: Default::default(),
                load: LoadSpec {
                    users: *users,
                    ramp_ms: 1,
                    hold_ms: 1,
                    window_ms: 1,
                    kind: lab_study::plan::LoadKind::Users,
                    generators: 1,
                    timeout_ms: None,
                },
                prediction: None,
            }
        };
        Plan {
            schema: lab_study::plan::SCHEMA.to_owned(),
            study: "s".to_owned(),
            title: "t".to_owned(),
            seed: 1,
            speed: 1.0,
            dates_from: jiff::civil::date(2026, 1, 5),
            search: None,
            trials: (1..).zip(users).map(trial).collect(),
        }
    }

    const MACHINE: Limits = Limits {
        open_files: 20_000,
        ports: 28_232,
        memory_bytes: 8 << 30,
        disk_bytes: 50 << 30,
    };

    fn words(plan: &Plan, limits: &Limits) -> String {
        let problems: Vec<_> = check(plan, limits).iter().map(Problem::to_string).collect();
        problems.join("\n")
    }

    #[test]
    fn what_fits_is_no_problem() {
        assert_eq!(words(&plan(&[1, 3000, 19_800], 0), &MACHINE), "");
    }

    #[test]
    fn the_largest_trial_stands_for_all() {
        let problems = check(&plan(&[19_801, 25_000, 21_000], 0), &MACHINE);
        let excess = Excess::OpenFiles { limit: 20_000 };
        assert_eq!(
            problems,
            [Problem {
                trial: 2,
                users: 25_000,
                excess
            }]
        );
    }

    #[test]
    fn each_limit_is_said_in_words() {
        let few_ports = Limits {
            open_files: 1 << 20,
            ports: 1000,
            ..MACHINE
        };
        let little_memory = Limits {
            memory_bytes: 10 << 20,
            ..MACHINE
        };
        let report = [
            words(&plan(&[900], 0), &few_ports),
            words(&plan(&[3000], 0), &little_memory),
            words(&plan(&[3000], 30 << 20), &MACHINE),
            words(&plan(&[1_000_000], 0), &MACHINE),
        ];
        insta::assert_snapshot!(report.join("\n\n"));
    }
}
