//! The progress display of a run on stderr: a panel on a terminal that has room for it, plain lines
//! otherwise.

use std::io::{IsTerminal, stderr};
use std::path::Path;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use lab_archive::{ErrorExample, OtherProgram, TrialEnd};
use lab_conduct::{Event, Judged, Phase, Progress};
use lab_estimate::{cell_words, duration};
use lab_study::model::Cell;
use lab_study::plan::{LoadKind, LoadSpec, Stage};

use crate::panel::{LEAST_WIDTH, Panel};
use crate::stderr::say;
use crate::words::{self, whole_seconds};

/// The interval between plain lines during the load.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Draws the events of a run.
pub struct Display {
    bar: Option<ProgressBar>,
    panel: Panel,
    /// Whether the current trial repeats one of the plan.
    repeats: bool,
    trial: String,
    kind: LoadKind,
    /// The sessions of a sequence.
    sessions: u64,
    stages: Vec<Stage>,
    phase: &'static str,
    last_line: Option<Duration>,
    setup_step: Option<u32>,
    /// The number of looks at a busy machine before this trial.
    waiting: u32,
}

impl Default for Display {
    fn default() -> Self {
        Self::new()
    }
}

impl Display {
    /// Returns a display that shows nothing yet.
    #[must_use]
    pub fn new() -> Self {
        let bar = has_room().then(|| {
            let bar = ProgressBar::new_spinner();
            // The template is a constant; a fault in it shows as the default style.
            if let Ok(style) = ProgressStyle::with_template("{msg}") {
                bar.set_style(style);
            }
            bar
        });
        Self {
            bar,
            panel: Panel::default(),
            repeats: false,
            trial: String::new(),
            kind: LoadKind::Users,
            sessions: 0,
            stages: Vec::new(),
            phase: "",
            last_line: None,
            setup_step: None,
            waiting: 0,
        }
    }

    /// Shows an event of the run.
    pub fn show(&mut self, event: &Event) {
        self.keep_panel(columns());
        match event {
            Event::Restored(restored) => self.line(&words::restored(restored)),
            Event::Cleared { path, pid } => self.line(&words::cleared(path, *pid)),
            Event::Gone { path, value } => self.line(&words::gone(path, value)),
            Event::RunStarted {
                dir,
                trials,
                completed,
                planned,
            } => self.begin(dir, (*trials, *completed), *planned),
            Event::TrialStarted {
                id,
                attempt_of,
                of,
                cell,
                control,
                load,
            } => {
                let cell = trial_words(cell, load, *control);
                self.kind = load.kind;
                self.sessions = load.kind.sessions(load.users).unwrap_or_default();
                self.stages.clone_from(&load.stages);
                self.trial = match attempt_of {
                    None => format!("trial {id}/{of}, {cell}"),
                    Some(first) => format!("trial {first}/{of} again (as {id}), {cell}"),
                };
                (self.last_line, self.setup_step, self.waiting) = (None, None, 0);
                self.repeats = attempt_of.is_some();
                self.panel.begin(self.trial.clone());
            }
            Event::Waiting {
                disturbed_by,
                programs,
                left,
            } => self.wait(disturbed_by, programs, *left),
            Event::CountedThere { .. } | Event::PartCountedThere { .. } => {}
            Event::Phase(phase) => self.enter(*phase),
            Event::SetupProgress {
                step,
                steps,
                users_done,
                transactions,
                errors,
            } => {
                let text = format!(
                    "setup step {}/{steps}, {users_done} users, {transactions} requests, {errors} errors",
                    step + 1
                );
                self.setup(*step, &text);
            }
            Event::Progress(progress) => self.load(progress),
            Event::TrialDone {
                end,
                transactions,
                errors,
                took,
                judged,
                ..
            } => {
                self.trial_done(end, (*transactions, *errors), *took, judged);
            }
            // The report has the examples; between plain lines they would be noise.
            Event::Failed(ErrorExample { step, detail, .. }) => {
                self.panel.errors.1 = format!("{step}: {detail}");
            }
            Event::Note(text) => self.line(&format!("{}: {text}", self.trial)),
        }
    }

    fn begin(&mut self, archive: &Path, (trials, completed): (u32, u32), planned: Duration) {
        let left = trials - completed;
        self.panel.done = (completed, trials, 0);
        self.panel.left = planned;
        self.line(&format!("archive: {}", archive.display()));
        let word = if left == 1 { "trial" } else { "trials" };
        let load = duration(planned);
        self.line(&format!(
            "{left} {word}, {load} of load and the setup before it"
        ));
    }

    /// Clears the panel; the report follows.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn enter(&mut self, phase: Phase) {
        self.phase = match phase {
            Phase::Starting => "starting the system",
            Phase::Provisioning => "preparing the system and its users",
            Phase::Setup => "setup",
            Phase::Ramp => "ramp",
            Phase::Hold => "hold",
            Phase::Stopping => "stopping",
        };
        self.last_line = None;
        self.now(&format!("{}: {}", self.trial, self.phase));
        if self.bar.is_none() {
            self.line(&format!("{}: {}", self.trial, self.phase));
        }
    }

    /// Changes to plain lines, for good, when the terminal becomes too narrow for the panel: it would wrap, and could
    /// not be redrawn.
    fn keep_panel(&mut self, columns: usize) {
        if columns < LEAST_WIDTH
            && let Some(bar) = self.bar.take()
        {
            bar.finish_and_clear();
        }
    }

    /// Redraws the panel, with the trial's current state.
    fn now(&mut self, title: &str) {
        if let Some(bar) = &self.bar {
            title.clone_into(&mut self.panel.title);
            bar.set_message(self.panel.text(columns()));
        }
    }

    /// Prints the reason for a wait: at the first look, and every half a minute without a panel.
    fn wait(&mut self, disturbed_by: &[String], programs: &[OtherProgram], left: Duration) {
        let busiest: Vec<String> = programs
            .iter()
            .map(|one| format!("{} {:.0} %", one.name.escape_debug(), one.cpu_percent))
            .collect();
        let busiest = match busiest.is_empty() {
            true => String::new(),
            false => format!("; of one core: {}", busiest.join(", ")),
        };
        let text = format!(
            "{}: waits for a quiet machine, {} at most: {}{busiest}",
            self.trial,
            whole_seconds(left),
            disturbed_by.join(", ")
        );
        match &self.bar {
            Some(_) => self.now(&text),
            None if self.waiting.is_multiple_of(30) => self.line(&text),
            None => {}
        }
        self.waiting += 1;
    }

    fn setup(&mut self, step: u32, text: &str) {
        match &self.bar {
            Some(_) => self.now(&format!("{}: {text}", self.trial)),
            None if self.setup_step != Some(step) => {
                self.setup_step = Some(step);
                self.line(&format!("{}: {text}", self.trial));
            }
            None => {}
        }
    }

    fn load(&mut self, progress: &Progress) {
        let p95 = progress
            .p95_ms
            .map_or("-".to_owned(), |ms| format!("{ms:.1} ms"));
        let load = match self.kind {
            LoadKind::Users => format!("{} users", progress.users),
            LoadKind::Sequence { .. } => {
                format!("session {} of {}", progress.sessions, self.sessions)
            }
            LoadKind::Arrival { .. } if progress.waiting > 0 => {
                format!("{} sessions, {} waiting", progress.users, progress.waiting)
            }
            LoadKind::Arrival { .. } => format!("{} sessions", progress.users),
        };
        if self.bar.is_some() {
            let panel = &mut self.panel;
            panel.take(progress.tx_per_s, progress.p50_ms, progress.p95_ms);
            panel.trial = (progress.elapsed, progress.remaining);
            panel.left = progress.run_remaining;
            panel.load = load;
            panel.errors.0 = progress.errors;
            let title = format!("{}: {}", self.trial, self.phase);
            return self.now(&title);
        }
        let text = format!(
            "{}: {}, {load}, {:.0} tx/s, p95 {p95}, {} errors, {} left",
            self.trial,
            self.stage_at(progress.elapsed),
            progress.tx_per_s,
            progress.errors,
            whole_seconds(progress.remaining)
        );
        if self
            .last_line
            .is_none_or(|last| progress.elapsed >= last + LINE_EVERY)
        {
            self.last_line = Some(progress.elapsed);
            self.line(&text);
        }
    }

    /// Returns the stage, if the load has any, or else the phase.
    fn stage_at(&self, elapsed: Duration) -> String {
        let mut end = 0;
        let present = self.stages.iter().find(|stage| {
            end += stage.length_ms;
            elapsed < Duration::from_millis(end)
        });
        present.map_or(self.phase.to_owned(), |stage| {
            format!("stage {}", stage.name)
        })
    }

    fn trial_done(
        &mut self,
        end: &TrialEnd,
        (transactions, errors): (u64, u64),
        took: Duration,
        judged: &Judged,
    ) {
        let (done, _, invalid) = &mut self.panel.done;
        let is_valid = judged.failed.is_empty() && *end == TrialEnd::Complete;
        match self.repeats {
            // It was counted as invalid.
            true => *invalid -= u32::from(is_valid).min(*invalid),
            false => {
                *done += 1;
                *invalid += u32::from(!is_valid);
            }
        }
        let took = whole_seconds(took);
        let text = match end {
            TrialEnd::Complete => {
                format!(
                    "{}: done in {took}, {transactions} transactions, {errors} errors: {}",
                    self.trial,
                    verdict(judged)
                )
            }
            TrialEnd::SystemFailed { message } => {
                format!("{}: the system under test failed: {message}", self.trial)
            }
            TrialEnd::PreparationFailed { message, .. } => {
                format!("{}: the preparation failed: {message}", self.trial)
            }
            TrialEnd::GeneratorFailed { message } => {
                format!("{}: the load generator failed: {message}", self.trial)
            }
            TrialEnd::AgentLost { message } | TrialEnd::Aborted { message } => {
                format!("{}: no measurement: {message}", self.trial)
            }
        };
        self.line(&text);
    }

    fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None => say(format_args!("{text}")),
        }
    }
}

/// Returns true if stderr is a terminal with room for the panel, and plain text is not requested.
fn has_room() -> bool {
    let says = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let is_plain = says("NO_COLOR").is_some() || says("TERM").is_none_or(|term| term == "dumb");
    stderr().is_terminal() && !is_plain && columns() >= LEAST_WIDTH
}

/// The current columns of the terminal.
fn columns() -> usize {
    textwrap::termwidth()
}

/// `valid`, or the reasons against it.
fn verdict(judged: &Judged) -> String {
    let Some((first, others)) = judged.failed.split_first() else {
        return "valid".to_owned();
    };
    let others: Vec<&str> = others.iter().map(|check| check.name.as_str()).collect();
    let others = match others.is_empty() {
        true => String::new(),
        false => format!("; also {}", others.join(", ")),
    };
    format!("INVALID, {}: {}{others}", first.name, first.evidence)
}

/// The cell in words.
fn trial_words(cell: &Cell, load: &LoadSpec, control: bool) -> String {
    let mut words = match cell.is_empty() {
        true => load_words(load),
        false => cell_words(cell),
    };
    if control {
        words.push_str(" (control)");
    }
    words
}

/// The load in words, for a cell without factors.
fn load_words(load: &LoadSpec) -> String {
    match load.kind {
        LoadKind::Users if !load.stages.is_empty() => format!("up to {} users", load.users),
        LoadKind::Users => format!("users {}", load.users),
        LoadKind::Arrival { rate_per_s, .. } if !load.stages.is_empty() => {
            format!("up to {} sessions/s", rate(rate_per_s))
        }
        LoadKind::Arrival { rate_per_s, .. } => format!("{} sessions/s", rate(rate_per_s)),
        LoadKind::Sequence { .. } => {
            let sessions = load.kind.sessions(load.users).unwrap_or_default();
            match load.users {
                1 => format!("{sessions} sessions in sequence"),
                users => format!("{sessions} sessions of {users} users"),
            }
        }
    }
}

/// A recording's rate is a quotient with many digits, so it is rounded.
fn rate(per_s: f64) -> String {
    let parts = if per_s < 1.0 { 1e4 } else { 1e2 };
    ((per_s * parts).round() / parts).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_as_many_digits_as_people_read() {
        let shown = [50.335_570_469, 200.0, 0.5, 0.001].map(rate);
        assert_eq!(shown, ["50.34", "200", "0.5", "0.001"]);
    }

    #[test]
    fn a_terminal_that_was_made_narrow_gets_plain_lines() {
        let mut display = Display::new();
        display.bar = Some(ProgressBar::hidden());
        display.keep_panel(LEAST_WIDTH);
        assert!(display.bar.is_some());
        display.keep_panel(LEAST_WIDTH - 1);
        assert!(display.bar.is_none());
        // Widened again, the display stays as it is.
        display.keep_panel(LEAST_WIDTH);
        assert!(display.bar.is_none());
    }
}
