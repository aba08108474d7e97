//! The state of a run, from its archive. Pure: the same lines give the same state.

use std::collections::{BTreeMap, VecDeque};

use lab_analysis::Analysis;
use lab_analysis::format::{cell_label, plural};
use lab_analysis::model::Verdict;
use lab_archive::{EventLine, Growth, Happening, Manifest, TrialEnd};
use lab_plan::{Cell, Question};

use crate::series::Load;
use crate::trial::Trial;

/// Most lines of the log.
const LINES: usize = 200;

/// The state of a run.
#[derive(Debug)]
pub struct State {
    /// Study, machine, and start time.
    pub manifest: Manifest,
    /// Its mode.
    pub mode: Mode,
    /// The conducting process, once known.
    pub pid: Option<u32>,
    /// Trials of the plan; for a search, the most it takes.
    pub trials: u32,
    /// The current trial, or the last one until the next starts.
    pub trial: Option<Trial>,
    /// Finished trials in the archive, in the order in which they ended.
    pub done: Vec<Done>,
    /// Events, the newest last.
    pub log: VecDeque<Line>,
    /// True if there is a log: archives of earlier versions have none.
    pub is_logged: bool,
    question: Option<Question>,
    /// Ramp and hold of each trial of the plan.
    lengths: BTreeMap<u32, u64>,
}

/// The mode of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// No event yet.
    Unknown,
    /// Its trials run.
    Running,
    /// All trials of its plan are finished.
    Ended,
    /// It was interrupted, and can be resumed.
    Interrupted,
    /// The conducting process is gone.
    Gone,
}

/// A finished trial in the archive.
#[derive(Debug, Clone, PartialEq)]
pub struct Done {
    /// Its number in the archive.
    pub id: u32,
    /// The trial of the plan that it repeats.
    pub attempt_of: Option<u32>,
    /// Its levels in words.
    pub label: String,
    /// Its outcome.
    pub outcome: Outcome,
    /// Why it is invalid; may be empty.
    pub why: String,
    /// For a search: true if it sustained its level.
    pub carried: Option<bool>,
}

/// The outcome of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Valid.
    Valid,
    /// Invalid.
    Invalid,
    /// The system under test failed.
    SystemFailed,
}

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The time, RFC 3339.
    pub at: String,
    /// The event in words.
    pub text: String,
    /// True if it is worth announcing.
    pub is_news: bool,
}

impl State {
    /// The state for a manifest and plan, without events.
    #[must_use]
    pub fn new(manifest: Manifest, plan: &serde_json::Value) -> Self {
        let question = serde_json::from_value(plan["question"].clone()).ok();
        let trials = plan["trials"].as_array().map_or(0, Vec::len);
        Self {
            manifest,
            mode: Mode::Unknown,
            pid: None,
            trials: u32::try_from(trials).unwrap_or(u32::MAX),
            trial: None,
            done: Vec::new(),
            log: VecDeque::new(),
            is_logged: false,
            question,
            lengths: trials_of(plan),
        }
    }

    /// Remaining ramps and holds of this invocation, including the current trial's.
    #[must_use]
    pub fn left_ms(&self) -> f64 {
        let trial = self.trial.as_ref().filter(|trial| trial.phase != "done");
        let (under_way, length) = trial.map_or((None, 0), |trial| {
            let of = trial.attempt_of.unwrap_or(trial.id);
            (Some(of), trial.ramp_ms + trial.hold_ms)
        });
        let is_done = |id: u32| {
            let mut done = self.done.iter();
            done.any(|done| done.attempt_of.unwrap_or(done.id) == id)
        };
        // Trials that a search has not chosen yet take as long as the current one.
        let to_come = (1..=self.trials).filter(|id| Some(*id) != under_way && !is_done(*id));
        let to_come = to_come.map(|id| self.lengths.get(&id).copied().unwrap_or(length));
        let of_trial = trial.map_or(0.0, |trial| trial.left_ms().unwrap_or(length as f64));
        to_come.sum::<u64>() as f64 + of_trial
    }

    /// Finished trials of the plan, and the valid ones among them.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        let mut planned: Vec<(u32, bool)> = Vec::new();
        for done in &self.done {
            let of = done.attempt_of.unwrap_or(done.id);
            let valid = done.outcome == Outcome::Valid;
            match planned.iter_mut().find(|(id, _)| *id == of) {
                Some(one) => one.1 |= valid,
                None => planned.push((of, valid)),
            }
        }
        let valid = planned.iter().filter(|(_, valid)| *valid).count();
        (planned.len(), valid)
    }

    /// Adds a line of the log. Returns a trial that starts: its growth must be read.
    pub fn happened(&mut self, line: &EventLine) -> Option<u32> {
        self.is_logged = true;
        match &line.what {
            Happening::RunStarted {
                pid,
                trials,
                completed,
                ..
            } => {
                (self.mode, self.pid, self.trials) = (Mode::Running, Some(*pid), *trials);
                let left = plural((trials - trials.min(completed)) as usize, "trial");
                self.say(line, format!("The run begins: {left}."), true);
            }
            Happening::TrialStarted { trial, .. } => {
                self.begins(line);
                return Some(*trial);
            }
            Happening::Waiting {
                disturbed_by,
                left_ms,
            } => {
                let what = disturbed_by.join(", ");
                let left = lab_analysis::format::duration(*left_ms as f64);
                self.doing(format!("waits for a quiet machine, {left} at most: {what}"));
            }
            Happening::CountedThere { cores } => self.counted_there(None, *cores),
            Happening::PartCountedThere { part, cores } => self.counted_there(Some(part), *cores),
            Happening::Phase { phase } => {
                self.doing(String::new());
                if let Some(trial) = &mut self.trial {
                    phase.clone_into(&mut trial.phase);
                    let text = format!("Trial {}: {}.", trial.id, phase_words(phase));
                    let is_news = matches!(&**phase, "ramp" | "hold");
                    self.say(line, text, is_news);
                }
            }
            Happening::Setup {
                step,
                steps,
                users_done,
                transactions,
                errors,
            } => self.doing(format!(
                "setup step {} of {steps}: {users_done} users, {transactions} requests, {errors} errors",
                step + 1
            )),
            Happening::Failed { example } => {
                if let Some(trial) = &mut self.trial {
                    trial.example(example.clone());
                }
            }
            Happening::TrialDone { .. } => self.ends(line),
            Happening::Note { text } => self.say(line, text.clone(), true),
            Happening::RunEnded { interrupted } => {
                let (mode, text) = match interrupted {
                    true => (Mode::Interrupted, "The run was interrupted; --resume goes on."),
                    false => (Mode::Ended, "The run is over."),
                };
                self.mode = mode;
                self.say(line, text.to_owned(), true);
            }
            Happening::Unknown => {}
        }
        None
    }

    /// Sets the number of cores of the machine of the system, or of a part of it.
    fn counted_there(&mut self, part: Option<&str>, cores: u32) {
        let Some(trial) = &mut self.trial else { return };
        match part {
            Some(part) => trial.part(part).cores = Some(cores),
            None => trial.system_cores = Some(cores),
        }
    }

    fn begins(&mut self, line: &EventLine) {
        let Happening::TrialStarted {
            trial: id,
            attempt_of,
            of,
            cell,
            users,
            ramp_ms,
            hold_ms,
            control,
        } = &line.what
        else {
            return;
        };
        let mut label = self.label(cell, *users);
        if *control {
            label.push_str(" (control)");
        }
        let mut trial = Trial::new(*id, &self.manifest);
        (trial.attempt_of, trial.of, trial.users) = (*attempt_of, *of, *users);
        (trial.ramp_ms, trial.hold_ms) = (*ramp_ms, *hold_ms);
        let again = attempt_of.map_or_else(String::new, |of| format!(", trial {of} again"));
        let text = format!("Trial {id} of {of}{again} begins: {label}.");
        trial.label = label;
        trial.load = Load::of((ramp_ms + hold_ms) as f64);
        self.trials = self.trials.max(*of);
        self.trial = Some(trial);
        self.say(line, text, true);
    }

    /// A current trial of which the archive only has the folder.
    pub(crate) fn found(&mut self, id: u32) {
        let mut trial = Trial::new(id, &self.manifest);
        (trial.of, trial.label) = (self.trials, format!("trial {id}"));
        self.trial = Some(trial);
    }

    fn ends(&mut self, line: &EventLine) {
        let Happening::TrialDone {
            trial: id,
            end,
            transactions,
            errors,
            failed,
            carried,
            ..
        } = &line.what
        else {
            return;
        };
        let (outcome, why) = match (end, failed.first()) {
            (TrialEnd::SystemFailed { message }, _) => (Outcome::SystemFailed, message.clone()),
            (
                TrialEnd::PreparationFailed { message, .. }
                | TrialEnd::GeneratorFailed { message }
                | TrialEnd::AgentLost { message }
                | TrialEnd::Aborted { message },
                _,
            ) => (Outcome::Invalid, message.clone()),
            (TrialEnd::Complete, Some(first)) => (Outcome::Invalid, first.clone()),
            (TrialEnd::Complete, None) => (Outcome::Valid, String::new()),
        };
        let of_this = self.trial.as_mut().filter(|trial| trial.id == *id);
        let (attempt_of, label) = of_this.map_or((None, String::new()), |trial| {
            "done".clone_into(&mut trial.phase);
            (trial.attempt_of, trial.label.clone())
        });
        let words = match outcome {
            Outcome::Valid => "a valid measurement".to_owned(),
            Outcome::Invalid => format!("no measurement, {why}"),
            Outcome::SystemFailed => format!("the system under test failed: {why}"),
        };
        let text =
            format!("Trial {id} is done, {transactions} transactions, {errors} errors: {words}.");
        self.put(Done {
            id: *id,
            attempt_of,
            label,
            outcome,
            why,
            carried: *carried,
        });
        self.say(line, text, true);
    }

    /// Adds an analysis's trials that the log lacks.
    pub(crate) fn recall(&mut self, analysis: &Analysis) {
        for trial in &analysis.trials {
            if self.done.iter().any(|done| done.id == trial.id) {
                continue;
            }
            let outcome = match (&trial.system_failure, trial.verdict) {
                (Some(_), _) => Outcome::SystemFailed,
                (None, Verdict::Valid) => Outcome::Valid,
                (None, Verdict::Invalid) => Outcome::Invalid,
            };
            self.put(Done {
                id: trial.id,
                attempt_of: trial.attempt_of,
                label: trial.label.clone(),
                outcome,
                why: trial.system_failure.clone().unwrap_or_default(),
                carried: trial.carried,
            });
        }
        let summary = &analysis.summary;
        if self.mode == Mode::Unknown && summary.complete >= summary.planned {
            self.mode = Mode::Ended;
        }
    }

    /// Adds new data of the current trial.
    pub fn grew(&mut self, growth: Growth) {
        if let Some(trial) = &mut self.trial {
            trial.grow(growth);
        }
    }

    fn put(&mut self, done: Done) {
        self.done.retain(|other| other.id != done.id);
        self.done.push(done);
    }

    fn doing(&mut self, what: String) {
        if let Some(trial) = &mut self.trial {
            trial.doing = what;
        }
    }

    fn say(&mut self, line: &EventLine, text: String, is_news: bool) {
        if self.log.len() >= LINES {
            self.log.pop_front();
        }
        let at = line.at.clone();
        self.log.push_back(Line { at, text, is_news });
    }

    fn label(&self, cell: &serde_json::Value, users: u32) -> String {
        let cell: Option<Cell> = serde_json::from_value(cell.clone()).ok();
        match (cell, &self.question) {
            (Some(cell), Some(question)) if !cell.is_empty() => cell_label(question, &cell),
            _ => plural(users as usize, "user"),
        }
    }
}

/// Ramp and hold of the trials of a plan, by their ids.
fn trials_of(plan: &serde_json::Value) -> BTreeMap<u32, u64> {
    let trials = plan["trials"].as_array().map_or(&[][..], Vec::as_slice);
    let of = |trial: &serde_json::Value| {
        let part = |name: &str| trial["load"][name].as_u64();
        let id = u32::try_from(trial["id"].as_u64()?).ok()?;
        Some((id, part("ramp_ms")?.saturating_add(part("hold_ms")?)))
    };
    trials.iter().filter_map(of).collect()
}

/// A trial's phase in words.
pub(crate) fn phase_words(phase: &str) -> &str {
    match phase {
        "" => "about to begin",
        "starting" => "starting the system",
        "provisioning" => "preparing the system and its users",
        "setup" => "setup",
        "ramp" => "ramp, users come in",
        "hold" => "hold, full load",
        "stopping" => "stopping the system",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    pub(crate) fn state() -> State {
        let environment = json!({
            "kernel": "6.12", "cpu": "a CPU", "cores": 2, "memory_mb": 1000, "os": "an OS",
            "data_filesystem": "ext4", "plimsoll_version": "0.1.0",
            "pinning": { "generator": [0], "system": [1], "shared": false },
        });
        let manifest = json!({
            "schema": "plimsoll.archive/1", "study": "s", "title": "A study", "file_hash": "sha256:0",
            "seed": 1, "speed": 1.0, "overrides": [], "started": "2026-11-22T10:00:00Z",
            "environment": environment, "steps": ["Read", "Write", "probe"], "files": [],
        });
        let trial = |id: u32| json!({ "id": id, "load": { "ramp_ms": 1000, "hold_ms": 4000 } });
        let plan = json!({ "trials": [trial(1), trial(2), trial(3)] });
        State::new(serde_json::from_value(manifest).unwrap(), &plan)
    }

    fn tell(state: &mut State, lines: &[serde_json::Value]) {
        for line in lines {
            let mut line = line.clone();
            line["at"] = json!("2026-11-22T10:00:00Z");
            state.happened(&serde_json::from_value(line).unwrap());
        }
    }

    #[test]
    fn a_run_is_followed_from_its_beginning_to_its_end() {
        let mut state = state();
        let begin = |id: u32, again: Option<u32>| {
            json!({ "event": "trial_started", "trial": id, "attempt_of": again, "of": 3, "cell": {},
                "control": false, "users": 20, "ramp_ms": 1000, "hold_ms": 4000 })
        };
        let done = |id: u32, failed: &[&str]| {
            json!({ "event": "trial_done", "trial": id, "end": { "how": "complete" },
                "transactions": 9, "errors": 0, "took_ms": 6000, "failed": failed })
        };
        tell(
            &mut state,
            &[
                json!({ "event": "run_started", "pid": 7, "trials": 3, "completed": 0, "planned_ms": 15000 }),
                begin(1, None),
                json!({ "event": "counted_there", "cores": 16 }),
                json!({ "event": "phase", "phase": "hold" }),
            ],
        );
        assert_eq!(state.trial.as_ref().unwrap().system_cores, Some(16));
        assert_eq!((state.mode, state.trials), (Mode::Running, 3));
        assert!((state.left_ms() - 15_000.0).abs() < 1e-9);
        state.trial.as_mut().unwrap().elapsed_ms = 3000.0;
        assert!((state.left_ms() - 12_000.0).abs() < 1e-9);
        tell(
            &mut state,
            &[done(1, &["waits: 3 %"]), begin(4, Some(1)), done(4, &[])],
        );
        assert_eq!(
            state.counts(),
            (1, 1),
            "one trial of the plan, at its second attempt"
        );
        assert_eq!(state.done[0].outcome, Outcome::Invalid);
        let end = json!({ "event": "run_ended", "interrupted": true });
        tell(&mut state, &[end, json!({ "event": "of a later version" })]);
        assert_eq!(state.mode, Mode::Interrupted);
        let last = state.log.back().unwrap();
        assert!(last.is_news && last.text.contains("--resume"), "{last:?}");
    }

    #[test]
    fn the_log_is_bounded_and_odd_lines_do_no_harm() {
        let mut state = state();
        let done = json!({ "event": "trial_done", "trial": 9, "end": { "how": "complete" },
            "transactions": 0, "errors": 0, "took_ms": 0, "failed": [] });
        let run = json!({ "event": "run_started", "pid": 7, "trials": 1, "completed": 9, "planned_ms": 0 });
        tell(
            &mut state,
            &[done, run, json!({ "event": "phase", "phase": "hold" })],
        );
        for _ in 0..1000 {
            tell(&mut state, &[json!({ "event": "note", "text": "x" })]);
        }
        assert_eq!(state.log.len(), LINES);
        assert!(
            (state.left_ms() - 5000.0).abs() < 1e-9,
            "the one trial of the plan"
        );
    }
}
