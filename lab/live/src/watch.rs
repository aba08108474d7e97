//! Watches a run: reads new data of its archive, and has complete trials analysed.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lab_analysis::Analysis;
use lab_archive::{ArchiveError, Follow};

use crate::state::{Mode, State};

/// Analyses an archive of any version.
pub type Analyse = Box<dyn Fn(&Path) -> Result<Analysis, String> + Send>;

/// After so long without an event the process is checked.
const SILENCE: Duration = Duration::from_secs(5);
/// Most reads of a current trial at once.
const LOOKS: usize = 64;

/// Requests of viewers to the conducting process; only that process has it.
#[derive(Debug, Clone, Default)]
pub struct Controls {
    /// Ends the run; finished trials stay.
    pub stop: Arc<AtomicBool>,
    /// Pauses it before the next trial.
    pub pause: Arc<AtomicBool>,
    /// Skips the current trial.
    pub skip: Arc<AtomicBool>,
    /// True if trials can be skipped: those of a search depend on each other.
    pub may_skip: bool,
}

/// A watched run.
pub struct Watch {
    follow: Follow,
    state: State,
    analyse: Analyse,
    analysis: Option<Analysis>,
    /// Number of trials in the analysis.
    analysed: Option<usize>,
    controls: Option<Controls>,
    heard: Option<Instant>,
    has_folders: bool,
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch")
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

impl Watch {
    /// Starts to watch the archive in `dir`. Only its manifest and plan are read until the first look.
    ///
    /// # Errors
    /// [`ArchiveError`], if there is none.
    pub fn open(
        dir: &Path,
        analyse: Analyse,
        controls: Option<Controls>,
    ) -> Result<Self, ArchiveError> {
        let follow = Follow::open(dir)?;
        let state = State::new(follow.manifest().clone(), &follow.plan()?);
        Ok(Self {
            follow,
            state,
            analyse,
            analysis: None,
            analysed: None,
            controls,
            heard: None,
            has_folders: false,
        })
    }

    /// Reads new data.
    ///
    /// # Errors
    /// [`ArchiveError`], if the archive is damaged or missing.
    pub fn look(&mut self, now: Instant) -> Result<(), ArchiveError> {
        let lines = self.follow.events()?;
        let mut heard = !lines.is_empty() || self.heard.is_none();
        let begun = lines
            .iter()
            .filter_map(|line| self.state.happened(line))
            .last();
        if let Some(id) = begun {
            self.follow.begin(id);
        }
        if !self.state.is_logged && !self.has_folders {
            self.has_folders = true;
            if let Some(id) = self.follow.under_way()? {
                self.state.found(id);
                self.follow.begin(id);
            }
        }
        for _ in 0..LOOKS {
            let growth = self.follow.growth()?;
            let more = growth.more;
            heard |= !growth.windows.is_empty();
            self.state.grew(growth);
            if !more {
                break;
            }
        }
        if heard {
            self.heard = Some(now);
        }
        self.is_gone(now);
        self.judge();
        Ok(())
    }

    /// Checks whether the conducting process ended without reporting it.
    fn is_gone(&mut self, now: Instant) {
        let silent = self
            .heard
            .is_none_or(|heard| now.duration_since(heard) >= SILENCE);
        let (Mode::Running, Some(pid), true) = (self.state.mode, self.state.pid, silent) else {
            return;
        };
        if !Path::new(&format!("/proc/{pid}")).exists() {
            self.state.mode = Mode::Gone;
        }
    }

    /// Updates the analysis if the complete trials have changed.
    fn judge(&mut self) {
        let done = self.state.done.len();
        let is_known = self.analysed == Some(done) && self.state.is_logged;
        if is_known || (self.analysed.is_some() && !self.state.is_logged) {
            return;
        }
        self.analysed = Some(done);
        if done == 0 && self.state.is_logged {
            return;
        }
        // After a failure the next trial triggers another attempt.
        if let Ok(analysis) = (self.analyse)(self.follow.dir())
            && analysis.summary.complete > 0
        {
            self.state.recall(&analysis);
            self.analysed = Some(self.state.done.len());
            self.analysis = Some(analysis);
        }
    }

    /// The archive's folder, which names the run.
    #[must_use]
    pub fn run(&self) -> &str {
        let name = self.follow.dir().file_name();
        name.and_then(|name| name.to_str()).unwrap_or_default()
    }

    /// The state of the run.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The analysis of complete trials; `None` without any.
    #[must_use]
    pub fn analysis(&self) -> Option<&Analysis> {
        self.analysis.as_ref()
    }

    /// The controls of the run, while it is in progress.
    #[must_use]
    pub fn controls(&self) -> Option<&Controls> {
        self.controls
            .as_ref()
            .filter(|_| self.state.mode == Mode::Running)
    }
}

impl Controls {
    /// Returns true if the run is paused before its next trial.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.pause.load(Ordering::Relaxed)
    }

    /// Returns true if it was asked to stop.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
