//! Reads frames from the archive of a run: as it grows, or from its finished trials.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use lab_archive::{ArchiveError, EventLine, Follow, Happening, TrialEnd};
use lab_plan::{Cell, Question};
use lab_trial::format::{cell_label, plural_count};

use crate::course::Course;
use crate::figure::{Frame, TrialLabels};

/// The source of frames.
#[derive(Debug)]
pub struct Source {
    run: String,
    archive: Archive,
    course: Option<Course>,
}

#[derive(Debug)]
enum Archive {
    /// No archive yet: the run that writes it has just started.
    ToCome(PathBuf),
    Growing(Box<Growing>),
    Finished(Box<Follow>, VecDeque<Finished>),
}

/// An archive in progress.
#[derive(Debug)]
struct Growing {
    follow: Follow,
    question: Option<Question>,
    /// True if it searches for the sustained users: they identify its trials.
    is_search: bool,
    /// Events read so far.
    events: VecDeque<EventLine>,
    /// The trial that started last.
    begun: Option<Begun>,
}

#[derive(Debug)]
struct Begun {
    id: u32,
    label: String,
}

/// A finished trial in the archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// Its number there.
    pub id: u32,
    /// Its levels in words.
    pub label: String,
    /// Start time of its ramp, RFC 3339.
    pub started: String,
    /// True if it is valid.
    pub is_valid: bool,
}

impl Source {
    /// Reads the trials that a run adds from now on to the archive that is, or will be, in `dir`.
    ///
    /// # Errors
    /// [`ArchiveError`], if an archive exists and can't be read.
    pub fn growing(dir: &Path) -> Result<Self, ArchiveError> {
        let mut source = Self {
            run: name_of(dir),
            archive: Archive::ToCome(dir.to_path_buf()),
            course: None,
        };
        source.appears()?;
        if let Archive::Growing(growing) = &mut source.archive {
            // Earlier events were already sent, or are not wanted.
            growing.follow.events()?;
        }
        Ok(source)
    }

    /// Reads these trials of the archive in `dir`.
    ///
    /// # Errors
    /// [`ArchiveError`], if there is none.
    pub fn finished(dir: &Path, trials: Vec<Finished>) -> Result<Self, ArchiveError> {
        Ok(Self {
            run: name_of(dir),
            archive: Archive::Finished(Box::new(Follow::open(dir)?), trials.into()),
            course: None,
        })
    }

    /// The next frame; `None` until the archive has more.
    ///
    /// # Errors
    /// [`ArchiveError`], if the archive is damaged or missing.
    pub fn frame(&mut self) -> Result<Option<Frame>, ArchiveError> {
        loop {
            if let Some(frame) = self.course.as_mut().and_then(Course::frame) {
                return Ok(Some(frame));
            }
            self.course.take_if(|course| course.is_told());
            self.appears()?;
            let more = match &mut self.archive {
                Archive::ToCome(_) => false,
                Archive::Growing(growing) => growing.goes_on(&self.run, &mut self.course)?,
                Archive::Finished(follow, trials) => {
                    goes_on(follow, trials, &self.run, &mut self.course)?
                }
            };
            if !more {
                return Ok(None);
            }
        }
    }

    /// Opens the archive, once it exists.
    fn appears(&mut self) -> Result<(), ArchiveError> {
        let Archive::ToCome(dir) = &self.archive else {
            return Ok(());
        };
        // Both exist before the first trial; the plan is written first.
        if !dir.join("manifest.json").exists() {
            return Ok(());
        }
        let follow = Follow::open(dir)?;
        let plan = follow.plan()?;
        let question = serde_json::from_value(plan["question"].clone()).ok();
        self.archive = Archive::Growing(Box::new(Growing {
            follow,
            question,
            is_search: plan["search"].is_object(),
            events: VecDeque::new(),
            begun: None,
        }));
        Ok(())
    }
}

impl Growing {
    /// Reads more; returns true if more may follow at once.
    fn goes_on(&mut self, run: &str, course: &mut Option<Course>) -> Result<bool, ArchiveError> {
        if let Some(line) = self.events.pop_front() {
            return self.happened(line, run, course).map(|()| true);
        }
        self.events.extend(self.follow.events()?);
        if !self.events.is_empty() {
            return Ok(true);
        }
        match course {
            Some(course) => grow(&mut self.follow, course),
            None => Ok(false),
        }
    }

    fn happened(
        &mut self,
        line: EventLine,
        run: &str,
        course: &mut Option<Course>,
    ) -> Result<(), ArchiveError> {
        match &line.what {
            // A skipped trial has no outcome.
            Happening::TrialStarted { .. } if course.is_some() => {
                end(course, None);
                self.events.push_front(line);
            }
            Happening::RunEnded { .. } => end(course, None),
            Happening::TrialStarted {
                trial,
                cell,
                users,
                control,
                ..
            } => {
                let mut label = self.label(cell, *users);
                if *control {
                    label.push_str(" (control)");
                }
                self.follow.begin(*trial);
                self.begun = Some(Begun { id: *trial, label });
            }
            Happening::Phase { phase } if phase == "ramp" => {
                *course = self.course(run, &line.at);
            }
            Happening::TrialDone {
                trial,
                end: how,
                failed,
                ..
            } => {
                if course.is_none() && self.begun.as_ref().is_some_and(|one| one.id == *trial) {
                    // The second trial of a duet is only logged at its end.
                    let started = self.follow.record(*trial)?.map(|record| record.started);
                    *course = started.and_then(|started| self.course(run, &started));
                }
                if let Some(course) = course
                    && grow(&mut self.follow, course)?
                {
                    // The data read so far comes first.
                    self.events.push_front(line);
                    return Ok(());
                }
                end(
                    course,
                    Some(*how == TrialEnd::Complete && failed.is_empty()),
                );
            }
            _ => {}
        }
        Ok(())
    }

    fn course(&self, run: &str, started: &str) -> Option<Course> {
        let begun = self.begun.as_ref()?;
        let manifest = self.follow.manifest();
        let of = TrialLabels {
            run: run.to_owned(),
            study: manifest.study.clone(),
            trial: begun.id,
            cell: begun.label.clone(),
            began_ms: ms(started)?,
        };
        Some(Course::new(of, manifest))
    }

    /// The label in reports.
    fn label(&self, cell: &serde_json::Value, users: u32) -> String {
        let users = plural_count(u64::from(users), "user");
        let cell: Option<Cell> = serde_json::from_value(cell.clone()).ok();
        match (cell, &self.question) {
            (Some(cell), _) if cell.is_empty() && self.is_search => users,
            (Some(cell), Some(question)) if self.is_search => {
                format!("{} · {users}", cell_label(question, &cell))
            }
            (Some(cell), Some(question)) => cell_label(question, &cell),
            _ => users,
        }
    }
}

/// Reads more of the trials of a list; returns true if more may follow at once.
fn goes_on(
    follow: &mut Follow,
    trials: &mut VecDeque<Finished>,
    run: &str,
    course: &mut Option<Course>,
) -> Result<bool, ArchiveError> {
    if let Some(course) = course {
        if !grow(follow, course)? {
            let of = trials.pop_front();
            course.end(of.map(|trial| trial.is_valid));
        }
        return Ok(true);
    }
    let Some(next) = trials.front() else {
        return Ok(false);
    };
    let manifest = follow.manifest();
    let of = TrialLabels {
        run: run.to_owned(),
        study: manifest.study.clone(),
        trial: next.id,
        cell: next.label.clone(),
        began_ms: ms(&next.started).unwrap_or_default(),
    };
    *course = Some(Course::new(of, manifest));
    let id = next.id;
    follow.begin(id);
    Ok(true)
}

fn end(course: &mut Option<Course>, is_valid: Option<bool>) {
    if let Some(course) = course {
        course.end(is_valid);
    }
}

/// Returns true if there was new data.
fn grow(follow: &mut Follow, course: &mut Course) -> Result<bool, ArchiveError> {
    let growth = follow.growth()?;
    let came = growth.more || !growth.windows.is_empty() || !growth.rows.is_empty();
    course.grow(growth);
    Ok(came)
}

fn ms(rfc3339: &str) -> Option<i64> {
    let at: Timestamp = rfc3339.parse().ok()?;
    Some(at.as_millisecond())
}

fn name_of(dir: &Path) -> String {
    let name = std::path::absolute(dir).unwrap_or_else(|_| dir.to_path_buf());
    let name = name.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}
