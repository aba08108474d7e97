//! State shared by all responses: the run, read no more often than necessary, and the number of viewers.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use lab_archive::ArchiveError;
use tokio::sync::{Semaphore, watch as signal};

use super::gate::Token;
use crate::clock;
use crate::page::{Part, parts};
use crate::watch::{Analyse, Controls, Watch};

/// Shortest interval between two reads of the archive.
const LOOK: Duration = Duration::from_millis(900);
/// Most pages that receive updates at once.
const READERS: usize = 16;

/// State shared by all responses.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) token: Token,
    source: Mutex<Source>,
    pub(super) readers: Arc<Semaphore>,
    /// Becomes true when the run's process has ended.
    pub(super) ended: signal::Receiver<bool>,
}

impl Shared {
    pub(super) fn new(token: Token, source: Source, ended: signal::Receiver<bool>) -> Self {
        Self {
            token,
            source: Mutex::new(source),
            readers: Arc::new(Semaphore::new(READERS)),
            ended,
        }
    }
}

/// The run, once there is an archive.
pub(super) struct Source {
    dir: PathBuf,
    controls: Option<Controls>,
    analyse: Option<Analyse>,
    watch: Option<Watch>,
    looked: Option<Instant>,
    parts: Arc<Vec<Part>>,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source")
            .field("dir", &self.dir)
            .finish_non_exhaustive()
    }
}

impl Source {
    pub(super) fn new(dir: PathBuf, analyse: Analyse, controls: Option<Controls>) -> Self {
        Self {
            dir,
            controls,
            analyse: Some(analyse),
            watch: None,
            looked: None,
            parts: Arc::default(),
        }
    }

    /// Reads the current state of the run; `None` until it has an archive.
    fn look(&mut self, is_last: bool) -> Result<Option<&Watch>, ArchiveError> {
        if self.watch.is_none() {
            self.begin()?;
        }
        let now = clock::now();
        let due = self.looked.is_none_or(|at| now.duration_since(at) >= LOOK);
        let Some(watch) = &mut self.watch else {
            return Ok(None);
        };
        if due || is_last {
            watch.look(now)?;
            self.looked = Some(now);
            self.parts = Arc::new(parts(watch));
        }
        Ok(Some(watch))
    }

    /// Opens the archive. A run that has just started may have none yet.
    fn begin(&mut self) -> Result<(), ArchiveError> {
        if !self.dir.join("manifest.json").exists() {
            return Ok(());
        }
        if let Some(analyse) = self.analyse.take() {
            let watch = Watch::open(&self.dir, analyse, self.controls.clone());
            self.watch = Some(watch?);
        }
        Ok(())
    }
}

/// Reads the run and maps it, outside the serving thread.
pub(super) async fn looked<T: Send + 'static>(
    shared: &Arc<Shared>,
    make: impl FnOnce(Option<&Watch>, &Arc<Vec<Part>>) -> T + Send + 'static,
) -> Result<T, String> {
    let shared = Arc::clone(shared);
    let is_last = *shared.ended.borrow();
    let looked = tokio::task::spawn_blocking(move || {
        let mut source = shared.source.lock().unwrap_or_else(PoisonError::into_inner);
        source
            .look(is_last)
            .map(|_| ())
            .map_err(|error| error.to_string())?;
        Ok(make(source.watch.as_ref(), &source.parts))
    });
    looked.await.unwrap_or_else(|error| Err(error.to_string()))
}
