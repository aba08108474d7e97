//! Checks whether a plan fits this machine, before anything starts. It judges no measurement.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use lab_host::machine::{self, Limits};
use lab_study::SystemSpec;
use lab_study::plan::{Plan, Search, Trial};

use crate::{connect, state};

/// Open files besides the users' connections: listeners, the store, the archive, libraries.
const FILE_RESERVE: u64 = 200;
/// Memory of one waiting virtual user, as measured with a million of them, rounded up.
const USER_BYTES: u64 = 1 << 10;
/// Additional memory of a connection in the generator, as measured at 15,000, rounded up.
const CONNECTION_BYTES: u64 = 18 << 10;
/// Archive size of a window: 3000 users for an hour write some 20 MB in 3600 of them.
const WINDOW_BYTES: u64 = 8 << 10;
/// More trials than most searches need.
const TRIALS_OF_A_SEARCH: u64 = 40;
/// The rest of the archive and the write-ahead log of an idle store.
const DISK_RESERVE: u64 = 256 << 20;

/// A trial that exceeds this machine's limits, or two that run at the same time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Its number in the plan.
    pub trial: u32,
    /// The other trial of a duet, where both together are too much.
    pub partner: Option<u32>,
    /// Its users, or those of both.
    pub users: u32,
    /// Their connections: as many as users, or the shared ones.
    pub connections: u32,
    /// The exceeded limit.
    pub excess: Excess,
}

/// A resource of which a trial needs more than there is.
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
    /// Space for the archive of the run, and for the system's data where no storage is named.
    Disk {
        /// Bytes needed.
        needed: u64,
        /// Bytes available.
        available: u64,
    },
    /// Space for the system's data in the storage that the study names.
    Storage {
        /// Bytes needed.
        needed: u64,
        /// Bytes available.
        available: u64,
    },
    /// Space for the system's data in the file system that is made for the trial.
    Filesystem {
        /// Bytes needed.
        needed: u64,
        /// Its size.
        size: u64,
    },
}

impl Problem {
    /// Returns true if it concerns a disk of the conducting machine, wherever the load comes from.
    pub(crate) fn is_of_disks(&self) -> bool {
        matches!(
            self.excess,
            Excess::Disk { .. } | Excess::Storage { .. } | Excess::Filesystem { .. }
        )
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            trial,
            partner,
            users,
            connections,
            excess,
        } = self;
        match partner {
            None => write!(f, "trial {trial} has {users} users")?,
            Some(partner) => write!(
                f,
                "trials {trial} and {partner} run at the same time and have {users} users"
            )?,
        }
        if connections < users {
            write!(f, " on {connections} connections")?;
        }
        f.write_str(": ")?;
        match *excess {
            Excess::OpenFiles { limit } => write!(
                f,
                "each needs an open file of its own in the generator and one in the system under \
                 test, and a process may have {limit} here, {FILE_RESERVE} of them for other \
                 purposes; at most {} fit (raise `ulimit -Hn`, or say under `load` how many \
                 `connections` the users share)",
                limit.saturating_sub(FILE_RESERVE)
            ),
            Excess::Ports { limit } => write!(
                f,
                "each needs a port for its connection, and there are {limit}, {FILE_RESERVE} of \
                 them kept for other programs; at most {} fit (widen \
                 net.ipv4.ip_local_port_range, or say under `load` how many `connections` the users \
                 share, or more `sources` of them)",
                limit.saturating_sub(FILE_RESERVE)
            ),
            Excess::Memory { needed, available } => write!(
                f,
                "the {} {} of memory for them, {} KB a user and {} KB a connection, and {} are \
                 available",
                match partner {
                    None => "generator needs",
                    Some(_) => "generators need",
                },
                size(needed),
                USER_BYTES >> 10,
                CONNECTION_BYTES >> 10,
                size(available)
            ),
            Excess::Disk { needed, available } => write!(
                f,
                "with their data the run needs up to {} on the disk of its folder, and {} are free",
                size(needed),
                size(available)
            ),
            Excess::Storage { needed, available } => write!(
                f,
                "their data needs up to {} in the study's storage, and {} are free",
                size(needed),
                size(available)
            ),
            Excess::Filesystem { needed, size: has } => write!(
                f,
                "their data needs up to {}, and the file system that is made for it has {} (`size` \
                 under `storage`)",
                size(needed),
                size(has)
            ),
        }
    }
}

/// Three digits are plenty for a limit.
fn size(bytes: u64) -> String {
    if bytes >= 10 << 30 {
        return format!("{} GiB", bytes >> 30);
    }
    format!("{} MiB", bytes >> 20)
}

/// All resources of which the plan needs more than there is; one entry per cause, for the largest trial. `run` is the
/// archive's folder, which holds the data of trials without a storage of their own.
pub(crate) fn check(plan: &Plan, run: &Path) -> Vec<Problem> {
    check_against(plan, &Limits::read(run), &|storage| {
        machine::free_bytes(Path::new(storage)).unwrap_or(u64::MAX)
    })
}

fn check_against(plan: &Plan, limits: &Limits, free: &dyn Fn(&str) -> u64) -> Vec<Problem> {
    let mut problems: Vec<Problem> = Vec::new();
    let trials = largest(plan);
    let mut units: Vec<&[Trial]> = units(plan, &trials).collect();
    units.sort_by_key(|unit| (std::cmp::Reverse(users(unit)), unit[0].id));
    let archive = archive_bytes(plan);
    for unit in units {
        let alone = unit.iter().flat_map(|trial| {
            of_trial(trial, limits).map(move |excess| (std::slice::from_ref(trial), excess))
        });
        let data = unit.iter().filter_map(|trial| {
            let place = trial.host.storage.as_deref();
            let is_there = |other: &Trial| other.host.storage.as_deref() == place;
            let kept = snapshot_bytes(plan, &trials, is_there);
            let data = data_of(unit, is_there).saturating_add(kept);
            on_disk(data, archive, place.map(free), limits)
        });
        let together = memory(unit, limits).into_iter().chain(data);
        for (of, excess) in alone.chain(together.map(|excess| (unit, excess))) {
            let same =
                |p: &Problem| std::mem::discriminant(&p.excess) == std::mem::discriminant(&excess);
            if !problems.iter().any(same) {
                problems.push(Problem {
                    trial: of[0].id,
                    partner: of.get(1).map(|partner| partner.id),
                    users: u32::try_from(users(of)).unwrap_or(u32::MAX),
                    connections: u32::try_from(connections(of)).unwrap_or(u32::MAX),
                    excess,
                });
            }
        }
    }
    problems
}

/// Trials that run at the same time.
fn units<'t>(plan: &Plan, trials: &'t [Trial]) -> impl Iterator<Item = &'t [Trial]> {
    trials.chunks(if plan.question.duet { 2 } else { 1 })
}

fn users(trials: &[Trial]) -> u64 {
    trials.iter().map(|trial| u64::from(trial.load.users)).sum()
}

/// Connections of their users: one each and those for simultaneous requests, or the shared ones.
fn connections(trials: &[Trial]) -> u64 {
    let of = |trial: &Trial| {
        let each = 1 + u64::from(trial.connections_beside);
        let own = u64::from(trial.load.users) * each;
        own.min(trial.reach.http.shared.map_or(u64::MAX, u64::from))
    };
    trials.iter().map(of).sum()
}

fn data_of(unit: &[Trial], is_meant: impl Fn(&Trial) -> bool) -> u64 {
    let meant = unit.iter().filter(|trial| is_meant(trial));
    meant.map(taken_bytes).fold(0, u64::saturating_add)
}

/// Local disk space of a trial: its data, or the file system made for it. A remote host's agent checks its own.
fn taken_bytes(trial: &Trial) -> u64 {
    if trial.host.on.is_some() {
        return 0;
    }
    let made = trial.host.filesystem.as_ref();
    made.map_or_else(|| data_bytes(trial), |made| made.bytes)
}

/// The plan's trials, and the largest that a search may choose.
fn largest(plan: &Plan) -> Vec<Trial> {
    let mut trials = plan.trials.clone();
    if let Some(Search { find, cells }) = &plan.search {
        let chosen = (1..).zip(cells).map(|(id, cell)| {
            let mut trial = cell.clone();
            trial.id = id;
            trial.load = trial.load.with_users(find.max_users);
            trial
        });
        trials.extend(chosen);
    }
    trials
}

/// Free disk that a run of the plan needs at most, in its folder and in the storage that its study
/// names: the archive of all trials, the data of the largest one, and the states that
/// trials begin with.
#[must_use]
pub fn disk_needed(plan: &Plan) -> u64 {
    let trials = largest(plan);
    let at_once = units(plan, &trials).map(|unit| data_of(unit, |_| true));
    let data = at_once.max().unwrap_or(0);
    let kept = snapshot_bytes(plan, &trials, |_| true);
    archive_bytes(plan)
        .saturating_add(data)
        .saturating_add(kept)
}

/// Size of the kept prepared states, one for each state at the start of a trial.
fn snapshot_bytes(plan: &Plan, trials: &[Trial], is_meant: impl Fn(&Trial) -> bool) -> u64 {
    // States prepared on remote hosts are not kept.
    let meant = trials
        .iter()
        .filter(|trial| is_meant(trial) && trial.machines().next().is_none());
    let states = meant.filter_map(|trial| Some((state::state(plan, trial)?, data_bytes(trial))));
    let states: BTreeMap<String, u64> = states.collect();
    states.into_values().fold(0, u64::saturating_add)
}

/// The final size of the archive. The trials that a search will choose are estimated.
fn archive_bytes(plan: &Plan) -> u64 {
    let of = |trial: &Trial| {
        let length = trial.load.ramp_ms.saturating_add(trial.load.hold_ms);
        (length / trial.load.window_ms.max(1)).saturating_mul(WINDOW_BYTES)
    };
    let known: u64 = plan.trials.iter().map(of).fold(0, u64::saturating_add);
    let searched = plan.search.iter().flat_map(|search| &search.cells);
    let chosen = searched.map(|trial| of(trial).saturating_mul(TRIALS_OF_A_SEARCH));
    let all = chosen.fold(known, u64::saturating_add);
    all.saturating_add(DISK_RESERVE)
}

/// Size of the system's data, as far as the study states it.
fn data_bytes(trial: &Trial) -> u64 {
    let user = trial.system.preparation().disk_per_user;
    u64::from(trial.load.users).saturating_mul(user)
}

/// The limits that apply to each trial alone, also beside another: files are counted by process, and a port may be used
/// once for each server (ten ports carry ten connections to each of two).
fn of_trial(trial: &Trial, limits: &Limits) -> impl Iterator<Item = Excess> + use<> {
    let Capacity {
        connections,
        by_files,
        by_ports,
        ..
    } = Capacity::of(trial, limits);
    let open_files = limits.open_files;
    let files = (connections > by_files).then_some(Excess::OpenFiles { limit: open_files });
    let limit = by_ports.saturating_add(FILE_RESERVE);
    let ports = (connections > by_ports).then_some(Excess::Ports { limit });
    let (needed, made) = (data_bytes(trial), trial.host.filesystem.as_ref());
    let size = made.map_or(u64::MAX, |made| made.bytes);
    let data = (needed > size).then_some(Excess::Filesystem { needed, size });
    files.into_iter().chain(ports).chain(data)
}

/// The connections that a trial needs, and the room for them on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// Number needed.
    pub connections: u64,
    /// Number allowed by open files: of one process if the lab starts the system, which has as many, and of all
    /// generators if it already runs.
    pub by_files: u64,
    /// Number allowed by ports: as many for each source address.
    pub by_ports: u64,
    /// Number of source addresses.
    pub sources: u64,
    /// Memory that the generator needs, bytes.
    pub memory: u64,
    /// Memory that can be had, bytes.
    pub available: u64,
}

impl Capacity {
    fn of(trial: &Trial, limits: &Limits) -> Self {
        let processes = match trial.system {
            SystemSpec::Attach(_) => u64::from(trial.load.generators),
            _ => 1,
        };
        let sources = connect::sources(&trial.reach).count().max(1) as u64;
        let but_reserve = |limit: u64| limit.saturating_sub(FILE_RESERVE);
        let trial = std::slice::from_ref(trial);
        Self {
            connections: connections(trial),
            by_files: but_reserve(limits.open_files).saturating_mul(processes),
            by_ports: but_reserve(limits.ports).saturating_mul(sources),
            sources,
            memory: memory_needed(trial),
            available: limits.memory_bytes,
        }
    }

    /// The room for the plan's trial with the most connections, with an archive in the folder `run`. `None` for a plan
    /// without trials.
    #[must_use]
    pub fn of_largest(plan: &Plan, run: &Path) -> Option<Self> {
        let limits = Limits::read(run);
        let trials = largest(plan);
        let rooms = trials.iter().map(|trial| Self::of(trial, &limits));
        rooms.max_by_key(|room| (room.connections, room.memory))
    }

    /// The number of source addresses that avoids long port searches in the kernel, if more are needed than there are.
    /// Linux assigns every other port first, and all of these before any of the rest.
    fn sources_wanted(&self) -> Option<u64> {
        let quick = self.by_ports / self.sources / 2;
        let wanted = self.connections.div_ceil(quick.max(1));
        (wanted > self.sources).then_some(wanted)
    }
}

impl fmt::Display for Capacity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (files, ports) = (("open files", self.by_files), ("ports", self.by_ports));
        let ((by, most), (other, more)) = match self.by_files <= self.by_ports {
            true => (files, ports),
            false => (ports, files),
        };
        writeln!(
            f,
            "{} connections at most; {by} bind first, at {most} ({other} at {more})",
            self.connections
        )?;
        if let Some(wanted) = self.sources_wanted() {
            writeln!(
                f,
                "over half of the ports of each address are taken: opening a connection\n\
                 costs a long search then, which `sources:` of {wanted} addresses spare"
            )?;
        }
        let (memory, available) = (size(self.memory), size(self.available));
        write!(f, "memory of the generator: about {memory} of {available}")
    }
}

/// Memory of the generators of trials that run at the same time.
fn memory(unit: &[Trial], limits: &Limits) -> Option<Excess> {
    let needed = memory_needed(unit);
    let available = limits.memory_bytes;
    (needed > available).then_some(Excess::Memory { needed, available })
}

fn memory_needed(trials: &[Trial]) -> u64 {
    let of_users = users(trials).saturating_mul(USER_BYTES);
    of_users.saturating_add(connections(trials).saturating_mul(CONNECTION_BYTES))
}

/// Data beside the archive, or in a `storage` of so many free bytes.
fn on_disk(data: u64, archive: u64, storage: Option<u64>, limits: &Limits) -> Option<Excess> {
    match storage {
        Some(available) => (data > available).then_some(Excess::Storage {
            needed: data,
            available,
        }),
        None => {
            let (needed, available) = (archive.saturating_add(data), limits.disk_bytes);
            (needed > available).then_some(Excess::Disk { needed, available })
        }
    }
}

#[cfg(test)]
mod tests {
    use lab_study::plan::LoadSpec;
    use lab_study::{AttachSpec, Filesystem, FilesystemSpec, Preparation};

    use super::*;

    fn plan(users: &[u32], pad: u64) -> Plan {
        let trial = |(id, users): (u32, &u32)| {
            let preparation = Preparation {
                disk_per_user: (64 << 10) + pad,
                ..Preparation::default()
            };
            let spec = AttachSpec {
                url: "http://localhost".to_owned(),
                pid: None,
                node_exporter: None,
                reset: None,
                preparation,
            };
            Trial::of(
                id,
                SystemSpec::Attach(spec),
                LoadSpec::of_users(*users, 1, 1),
            )
        };
        Plan::of("s", 1, (1..).zip(users).map(trial).collect())
    }

    const MACHINE: Limits = Limits {
        open_files: 20_000,
        ports: 28_232,
        memory_bytes: 8 << 30,
        disk_bytes: 50 << 30,
    };

    fn words(plan: &Plan, limits: &Limits) -> String {
        let problems: Vec<_> = check_against(plan, limits, &|_| 1 << 20)
            .iter()
            .map(Problem::to_string)
            .collect();
        problems.join("\n")
    }

    #[test]
    fn what_fits_is_no_problem() {
        assert_eq!(words(&plan(&[1, 3000, 19_800], 0), &MACHINE), "");
    }

    #[test]
    fn the_largest_trial_stands_for_all() {
        let problems = check_against(&plan(&[19_801, 25_000, 21_000], 0), &MACHINE, &|_| 0);
        let excess = Excess::OpenFiles { limit: 20_000 };
        assert_eq!(
            problems,
            [Problem {
                trial: 2,
                partner: None,
                users: 25_000,
                connections: 25_000,
                excess
            }]
        );
    }

    /// Two trials that fit alone need not fit together: they share memory and disks, not files and ports.
    #[test]
    fn both_sides_of_a_duet_need_room_at_the_same_time() {
        let machine = Limits {
            memory_bytes: 100 << 20,
            ..MACHINE
        };
        let mut both = plan(&[3000, 3000], 10 << 20);
        assert_eq!(words(&both, &machine), "");
        both.question.duet = true;
        let needs = disk_needed(&both);
        insta::assert_snapshot!(words(&both, &machine));
        both.question.duet = false;
        assert_eq!(needs - disk_needed(&both), 3000 * ((64 << 10) + (10 << 20)));
        let mut users = plan(&[15_000, 15_000], 0);
        users.question.duet = true;
        assert_eq!(words(&users, &MACHINE), "");
    }

    #[test]
    fn requests_that_go_out_at_the_same_time_need_connections() {
        let mut pages = plan(&[3000], 0);
        pages.trials[0].connections_beside = 6;
        let room = Capacity::of(&pages.trials[0], &MACHINE);
        assert_eq!(room.connections, 21_000);
        assert!(words(&pages, &MACHINE).contains("open file"));
    }

    #[test]
    fn users_who_share_connections_need_no_more_of_them() {
        let machine = Limits {
            disk_bytes: 100 << 30,
            ..MACHINE
        };
        let mut many = plan(&[1_000_000], 0);
        many.trials[0].reach.http.shared = Some(60_000);
        let said = words(&many, &machine);
        assert!(said.contains("1000000 users on 60000 connections: each needs an open file"));
        assert!(said.contains("at most 28032 fit"), "{said}");
        many.trials[0].load.generators = 4;
        many.trials[0].reach.sources = vec!["127.0.0.1-127.0.0.3".parse().unwrap()];
        assert_eq!(words(&many, &machine), "");
        let room = Capacity::of(&many.trials[0], &machine);
        assert_eq!((room.by_files, room.by_ports), (4 * 19_800, 3 * 28_032));
        let said = room.to_string();
        assert!(said.contains("open files bind first, at 79200 (ports at 84096)"));
        // Every other one of 28,032 ports: 14,016 for each of five.
        assert!(said.contains("`sources:` of 5 addresses spare"), "{said}");
        many.trials[0].reach.sources = vec!["127.0.0.1-127.0.0.5".parse().unwrap()];
        let said = Capacity::of(&many.trials[0], &machine).to_string();
        assert!(!said.contains("sources"), "{said}");
    }

    #[test]
    fn the_disk_of_another_machine_is_not_this_one() {
        let mut made = plan(&[3000], 0);
        made.trials[0].host.filesystem = Some(FilesystemSpec {
            kind: Filesystem::Xfs,
            bytes: 100 << 30,
            mkfs: Vec::new(),
            options: None,
        });
        assert!(words(&made, &MACHINE).contains("on the disk of its folder"));
        let needed = disk_needed(&made);
        made.trials[0].host.on = Some("db".to_owned());
        assert_eq!(words(&made, &MACHINE), "");
        assert_eq!(needed - disk_needed(&made), 100 << 30);
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
        let mut stored = plan(&[3000], 30 << 20);
        stored.trials[0].host.storage = Some("/small".to_owned());
        let mut made = plan(&[3000], 30 << 20);
        made.trials[0].host.filesystem = Some(FilesystemSpec {
            kind: Filesystem::Xfs,
            bytes: 4_000_000_000,
            mkfs: Vec::new(),
            options: None,
        });
        let report = [
            words(&stored, &MACHINE),
            words(&made, &MACHINE),
            words(&plan(&[900], 0), &few_ports),
            words(&plan(&[3000], 0), &little_memory),
            words(&plan(&[3000], 30 << 20), &MACHINE),
            words(&plan(&[1_000_000], 0), &MACHINE),
        ];
        insta::assert_snapshot!(report.join("\n\n"));
    }
}
