//! Two trials at the same time: each in its own thread, with its own system and generator process. They wait for each
//! other before their ramps.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use lab_archive::{Pinning, QuietGate, TrialWriter};
use lab_host::HostError;
use lab_host::cores::{self, Pinned};
use lab_machine::scratch::{Scratch, Work};
use lab_study::model::checks::CheckId;
use lab_study::model::{Level, VARIANT};
use lab_study::plan::{Plan, Trial};
use lab_workload::Workload;

use crate::ConductError;
use crate::barrier::{Barrier, Slot};
use crate::course::{Conductor, DuetPeer};
use crate::event::Event;
use crate::judged::{FailedCheck, Judged};
use crate::remote_host::Machines;
use crate::repeats::Repeats;
use crate::trial::Done;

/// Most queued events.
const QUEUE: usize = 64;

/// The trials of a plan in the units that run together: single, or two at a time, the left one first.
pub(crate) fn units(plan: &Plan) -> Vec<&[Trial]> {
    let each = if plan.question.duet { 2 } else { 1 };
    plan.trials.chunks(each).collect()
}

/// The units to run and to repeat; the id of a unit is that of its first trial.
pub(crate) fn repeats(plan: &Plan, units: &[&[Trial]]) -> Repeats {
    let of_plan = units.iter().map(|unit| (unit[0].id, unit[0].block));
    let repeats = Repeats::new(of_plan, plan.question.repeats);
    match plan.question.duet {
        true => repeats.in_pairs(),
        false => repeats,
    }
}

/// The outcomes of the duets of an archive, by the left trial of the plan: of `judged` trials, by the trial of the
/// plan. One without the other, as a killed run may leave it, is invalid.
pub(crate) fn archived(
    judged: &BTreeMap<u32, Vec<(u32, Judged)>>,
) -> BTreeMap<u32, Vec<(u32, Judged)>> {
    // The left trial of two has an odd number in every attempt.
    let left_of = |id: u32| id - (id + 1) % 2;
    let mut duets: BTreeMap<u32, BTreeMap<u32, Vec<&Judged>>> = BTreeMap::new();
    for (of, attempts) in judged {
        let duet = duets.entry(left_of(*of)).or_default();
        for (id, judged) in attempts {
            duet.entry(left_of(*id)).or_default().push(judged);
        }
    }
    let came_to = |(id, both): (u32, Vec<&Judged>)| match both[..] {
        [left, right] => (id, together([left.clone(), right.clone()])),
        _ => (id, alone()),
    };
    let of_plan = |(of, attempts): (u32, BTreeMap<u32, Vec<&Judged>>)| {
        (of, attempts.into_iter().map(came_to).collect())
    };
    duets.into_iter().map(of_plan).collect()
}

/// The duets of which only one trial is archived.
pub(crate) fn unfinished(duets: &BTreeMap<u32, Vec<(u32, Judged)>>) -> Vec<u32> {
    let is_half = |attempts: &[(u32, Judged)]| {
        let last = attempts
            .last()
            .and_then(|(_, judged)| judged.failed.first());
        last.is_some_and(|check| check.name == CheckId::Partner.title())
    };
    let halves = duets.iter().filter(|(_, attempts)| is_half(attempts));
    halves.map(|(of, _)| *of).collect()
}

/// The outcome of two trials that only count together.
pub(crate) fn together([left, right]: [Judged; 2]) -> Judged {
    let failed = |one: &Judged| !one.is_valid();
    let is_outside = [&left, &right]
        .into_iter()
        .filter(|one| failed(one))
        .all(|one| one.is_outside);
    let system_failed = left.system_failed || right.system_failed;
    let cpu = left.cpu.zip(right.cpu).map(|(left, right)| left + right);
    let before_load = [&left, &right]
        .into_iter()
        .filter(|one| failed(one))
        .all(|one| one.before_load);
    let first = if failed(&left) { left } else { right };
    Judged {
        is_outside: is_outside && failed(&first),
        system_failed,
        before_load: before_load && failed(&first),
        cpu,
        ..first
    }
}

/// The outcome of a trial whose peer is not in the archive.
fn alone() -> Judged {
    let failed = FailedCheck {
        name: CheckId::Partner.title().to_owned(),
        evidence: "the other trial of the duet is not in the archive".to_owned(),
        advice: String::new(),
    };
    Judged {
        failed: vec![failed],
        is_outside: true,
        ..Judged::default()
    }
}

/// One of the two trials, with the inputs of its thread.
pub(crate) struct Side<'r> {
    pub(crate) run: Shared<'r>,
    pub(crate) trial: Trial,
    pub(crate) attempt_of: Option<u32>,
    pub(crate) partner: u32,
    pub(crate) workloads: Vec<Arc<Workload>>,
    pub(crate) pinning: &'r Pinning,
    /// As of [`DuetPeer::together`].
    pub(crate) together: Option<&'r Pinning>,
    pub(crate) scratch: Scratch,
    pub(crate) work: &'r Work,
    pub(crate) slot: Slot<'r>,
    pub(crate) writer: TrialWriter,
    pub(crate) quiet: Option<QuietGate>,
    pub(crate) kernel: BTreeMap<String, String>,
    pub(crate) after: Duration,
    /// The remote hosts of its system.
    pub(crate) machines: Machines,
}

/// Data of the run that both read.
#[derive(Clone, Copy)]
pub(crate) struct Shared<'r> {
    pub(crate) program: &'r std::path::Path,
    pub(crate) plan: &'r Plan,
    pub(crate) snapshots: &'r crate::snapshot::Snapshots,
    pub(crate) profiles: &'r crate::profiles::Profiles,
    pub(crate) secrets: &'r lab_study::Secrets,
    pub(crate) interrupt: &'r std::sync::atomic::AtomicBool,
    pub(crate) control: &'r crate::control::Control,
}

/// The initial cores of a duet: each generator's workers are on the cores of its half, so that it has as many of them,
/// and each system is on its half or, if they are `together`, on both.
pub(crate) fn begin_on(halves: &[Pinning; 2], together: Option<&Pinning>) -> [Pinning; 2] {
    halves.each_ref().map(|half| Pinning {
        system: together.unwrap_or(half).system.clone(),
        ..half.clone()
    })
}

/// A note about the other trial, for the events of the left one.
pub(crate) fn beside(right: &Trial, halves: &[Pinning; 2], together: Option<&Pinning>) -> String {
    let variant = match right.cell.get(VARIANT) {
        Some(Level::Text(name)) => name.as_str(),
        _ => "the other variant",
    };
    let cores = |half: &Pinning| {
        let mut all = [&half.generator[..], &half.system].concat();
        all.sort_unstable();
        all.dedup();
        cores::words(&all)
    };
    if let Some(on) = &right.host.on {
        let place = match together {
            Some(_) => format!("on {on}, too"),
            None => format!("on the other half of the cores of {on}"),
        };
        return format!(
            "in a duet: trial {} ({variant}) runs at the same time, its system {place}",
            right.id
        );
    }
    if let Some(together) = together {
        return format!(
            "in a duet: trial {} ({variant}) runs at the same time, on the same {}",
            right.id,
            cores(together)
        );
    }
    format!(
        "in a duet, on {}; trial {} ({variant}) runs at the same time on {}",
        cores(&halves[0]),
        right.id,
        cores(&halves[1])
    )
}

pub(crate) type SideResult = Result<Option<Done>, ConductError>;

/// Runs both, and emits the events of the left one and the failures of either.
pub(crate) fn side_by_side(
    sides: [Side<'_>; 2],
    (barrier, halves): (&Barrier, &[Pinning; 2]),
    events: &mut dyn FnMut(Event),
) -> [SideResult; 2] {
    let is_together = sides.iter().all(|side| side.together.is_some());
    std::thread::scope(|scope| {
        if is_together {
            scope.spawn(|| barrier.swap_cores(halves));
        }
        let (sender, told) = sync_channel(QUEUE);
        let running = sides.map(|side| {
            let sender = sender.clone();
            scope.spawn(move || side.conduct(&sender))
        });
        drop(sender);
        for (is_left, event) in told {
            if is_left || matches!(event, Event::Failed(_) | Event::Note(_)) {
                events(event);
            }
        }
        running.map(came)
    })
}

fn came(thread: ScopedJoinHandle<'_, SideResult>) -> SideResult {
    match thread.join() {
        Ok(came) => came,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

impl Side<'_> {
    /// Runs its trial on its cores.
    fn conduct(self, sender: &SyncSender<(bool, Event)>) -> SideResult {
        let is_left = self.slot.is_left();
        // Its processes start on these cores.
        let own = &self.together.unwrap_or(self.pinning).generator;
        let _on_its_cores = Pinned::to(own).map_err(HostError::Cores)?;
        // The receiver is only gone when the run is over.
        let mut events = |event: Event| drop(sender.send((is_left, event)));
        let conductor = Conductor {
            program: self.run.program,
            plan: self.run.plan,
            trial: &self.trial,
            attempt_of: self.attempt_of,
            workloads: &self.workloads,
            pinning: self.pinning,
            scratch: &self.scratch,
            work: self.work,
            snapshots: self.run.snapshots,
            profiles: self.run.profiles,
            kernel: self.kernel,
            secrets: self.run.secrets,
            after: self.after,
            quiet: self.quiet,
            generators: None,
            machines: &self.machines,
            peer: Some(DuetPeer {
                trial: self.partner,
                slot: self.slot,
                together: self.together,
            }),
            events: &mut events,
            interrupt: self.run.interrupt,
            control: self.run.control,
            goes_beyond: false,
        };
        conductor.conduct(self.writer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outside() -> Judged {
        Judged::made_up("other programs", true)
    }

    fn own() -> Judged {
        Judged::made_up("waits", false)
    }

    #[test]
    fn two_count_together() {
        let valid = Judged::default;
        assert!(together([valid(), valid()]).is_valid());
        assert!(!together([valid(), valid()]).is_outside);
        for both in [
            [outside(), valid()],
            [valid(), outside()],
            [outside(), outside()],
        ] {
            assert!(together(both).may_be_repeated());
        }
        // A persistent cause prevents the repeat that the other trial's cause would allow.
        for both in [[outside(), own()], [own(), outside()], [valid(), own()]] {
            let judged = together(both);
            assert!(
                !judged.is_valid() && !judged.may_be_repeated(),
                "{judged:?}"
            );
        }
    }

    #[test]
    fn pair_ends_before_its_load_only_where_no_side_failed_later() {
        let unstarted = || Judged {
            system_failed: true,
            before_load: true,
            ..own()
        };
        let died = || Judged {
            system_failed: true,
            ..own()
        };
        let table = [
            ([unstarted(), Judged::default()], true),
            ([Judged::default(), unstarted()], true),
            ([unstarted(), unstarted()], true),
            ([unstarted(), died()], false),
            ([died(), unstarted()], false),
            ([Judged::default(), Judged::default()], false),
        ];
        for (both, expected) in table {
            assert_eq!(together(both.clone()).before_load, expected, "{both:?}");
        }
    }

    #[test]
    fn half_a_duet_is_run_again() {
        let archive = BTreeMap::from([
            (1, vec![(1, Judged::default()), (7, Judged::default())]),
            (2, vec![(2, outside()), (8, Judged::default())]),
            (4, vec![(4, Judged::default())]),
        ]);
        let came = archived(&archive);
        let of = |of: u32| -> Vec<(u32, bool)> {
            let attempts = came[&of].iter();
            attempts
                .map(|(id, judged)| (*id, judged.is_valid()))
                .collect()
        };
        assert_eq!(of(1), [(1, false), (7, true)]);
        assert_eq!(of(3), [(3, false)]);
        assert!(came[&3][0].1.may_be_repeated());
        assert_eq!(unfinished(&came), [3]);
    }
}
