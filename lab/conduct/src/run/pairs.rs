//! Runs the two trials of a duet at the same time.

use lab_archive::Pinning;
use lab_host::cores;
use lab_machine::scratch::{Scratch, Work};
use lab_study::plan::Trial;

use super::begin::not_pinned;
use super::{Run, Standing, started, workloads};
use crate::barrier::Barrier;
use crate::duet::{self, Shared, Side, SideResult};
use crate::event::Event;
use crate::judged::{Judge, Judged};
use crate::{ConductError, remote_host, sharing, system};

impl Run<'_> {
    /// Runs two trials and returns their outcome; `None` when they were interrupted or skipped. Their ids are `id` and
    /// the next one.
    pub(super) fn two(
        &self,
        trials: [&Trial; 2],
        (id, place): (u32, Standing),
        judge: Judge<'_>,
        events: &mut dyn FnMut(Event),
    ) -> Result<Option<Judged>, ConductError> {
        if !self.may_begin(events) {
            return Ok(None);
        }
        self.request.control.begin_trial();
        let [left, right] = self.attempts(trials, (id, place));
        events(started(&left.0, left.1));
        let halves = &self.halves_for(&left.0)?;
        let together = (!self.request.plan.question.apart).then(|| cores::both(halves));
        let together = together.as_ref();
        let begin_on = duet::begin_on(halves, together);
        events(Event::Note(duet::beside(&right.0, halves, together)));
        let here = [&left.0, &right.0].map(remote_host::local_part);
        let works = here.each_ref().map(|trial| &self.work[&trial.host.storage]);
        let Some(scratches) = self.scratches(works, &here)? else {
            return Ok(None);
        };
        let Ok(quiet) = self.quiet(scratches[0].on_disk(), events) else {
            return Ok(None);
        };
        let kernel = self.kernel.apply(&here[0].host.kernel)?;
        let barrier = Barrier::new();
        let machines = sharing::of_both(&self.request.machines);
        let rest = scratches.into_iter().zip(barrier.slots()).zip(machines);
        let mut rest = rest.zip(0..);
        let mut side = |own: &(Trial, Standing), partner: &(Trial, Standing)| {
            let Some((((scratch, slot), machines), at)) = rest.next() else {
                return Err(ConductError::DriverEnded);
            };
            Ok(Side {
                run: self.shared(),
                attempt_of: own.1.attempt_of,
                partner: partner.0.id,
                workloads: workloads(self.request, &own.0)?,
                pinning: &begin_on[at],
                together,
                scratch,
                work: works[at],
                slot,
                writer: self.archive.trial(own.0.id)?,
                quiet: quiet.clone(),
                kernel: kernel.clone(),
                after: own.1.after,
                machines,
                trial: own.0.clone(),
            })
        };
        let sides = [side(&left, &right)?, side(&right, &left)?];
        let done = duet::side_by_side(sides, (&barrier, halves), events);
        let put_back = self.kernel.put_back();
        let trials = [left, right];
        self.discard_unfinished(&trials, &done);
        put_back?;
        let [of_left, of_right] = done;
        let (Some(of_left), Some(of_right)) = (of_left?, of_right?) else {
            return Ok(None);
        };
        let [(left, _), (right, place)] = trials;
        let of_left = self.done(left.id, of_left, judge, events);
        // Event consumers see one trial after the other.
        events(started(&right, place));
        let of_right = self.done(right.id, of_right, judge, events);
        Ok(Some(duet::together([of_left, of_right])))
    }

    /// The local cores of both: without the system's if it is remote.
    fn halves_for(&self, trial: &Trial) -> Result<[Pinning; 2], ConductError> {
        let Some(mut halves) = self.halves.clone() else {
            let problem = "a duet needs two cores".to_owned();
            return Err(ConductError::Unsupported(problem));
        };
        if system::is_elsewhere(trial) {
            halves.iter_mut().for_each(not_pinned);
        }
        Ok(halves)
    }

    /// The folders of both; `None` when they were interrupted while a file system was made.
    fn scratches(
        &self,
        works: [&Work; 2],
        [left, right]: &[Trial; 2],
    ) -> Result<Option<[Scratch; 2]>, ConductError> {
        let Some(of_left) = self.scratch(works[0], left)? else {
            return Ok(None);
        };
        let of_right = self.scratch(works[1], right)?;
        Ok(of_right.map(|of_right| [of_left, of_right]))
    }

    fn discard_unfinished(&self, trials: &[(Trial, Standing); 2], done: &[SideResult; 2]) {
        for ((trial, _), done) in trials.iter().zip(done) {
            if !matches!(done, Ok(Some(_))) {
                // As for a single trial.
                let _ = self.archive.discard(trial.id);
            }
        }
    }

    /// Both trials under the ids of this attempt, and their positions in the run.
    fn attempts(
        &self,
        trials: [&Trial; 2],
        (id, place): (u32, Standing),
    ) -> [(Trial, Standing); 2] {
        let mut ids = [id, id + 1].into_iter();
        trials.map(|planned| {
            let trial = Trial {
                id: ids.next().unwrap_or(planned.id),
                ..planned.clone()
            };
            let attempt_of = place.attempt_of.map(|_| planned.id);
            (
                trial,
                Standing {
                    attempt_of,
                    ..place
                },
            )
        })
    }

    /// The data that both trials of a duet read.
    fn shared(&self) -> Shared<'_> {
        Shared {
            program: &self.request.program,
            plan: &self.request.plan,
            snapshots: &self.snapshots,
            profiles: &self.profiles,
            secrets: self.secrets,
            interrupt: self.interrupt,
            control: &self.request.control,
        }
    }
}
