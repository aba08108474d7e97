//! The results of all stages, and the faults that are left.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::journal::{Entry, Journal};
use crate::over::is_over;
use crate::plan::{self, NAMES, Planned};
use crate::stage::{Seen, Stage};
use crate::trials::Trials;

/// The maximum number of faults of one run.
const MOST_OF_ONE: u64 = 8;

/// A run with its faults.
struct Run {
    number: u32,
    faults: Vec<Planned>,
}

/// All stages take their runs from here, and return the results.
pub(crate) struct Tally {
    faults: u64,
    seed: u64,
    /// The maximum number of faults of one run, so that all stages have some.
    most: u64,
    /// The only fault of each run, if set: one link is lost for this time.
    away: Option<Duration>,
    book: Mutex<Book>,
}

#[derive(Default)]
struct Book {
    /// The faults that are neither done nor drawn for a current run.
    left: u64,
    /// The runs that were complete before this program was started.
    over: BTreeSet<u32>,
    next: u32,
    struck: [u64; NAMES.len()],
    seen: Seen,
    journal: Option<Journal>,
}

impl Book {
    fn add(&mut self, entry: Entry) {
        let Entry { struck, seen, .. } = entry;
        for (all, more) in self.struck.iter_mut().zip(struck) {
            *all += more;
        }
        self.seen.add(seen);
    }

    fn struck(&self) -> u64 {
        self.struck.iter().sum()
    }
}

impl Tally {
    /// Creates the tally of this number of faults, by a seed, minus the earlier ones.
    pub(crate) fn new(
        (faults, seed, away): (u64, u64, Option<Duration>),
        stages: usize,
        journal: Option<Journal>,
        before: Vec<Entry>,
    ) -> Self {
        let mut book = Book {
            over: before.iter().filter_map(|entry| entry.run).collect(),
            journal,
            ..Book::default()
        };
        before.into_iter().for_each(|entry| book.add(entry));
        book.left = faults.saturating_sub(book.struck());
        if !book.over.is_empty() && book.left > 0 {
            println!("{}: goes on", told(&book, faults));
        }
        Self {
            faults,
            seed,
            most: faults.div_ceil(stages as u64).clamp(1, MOST_OF_ONE),
            away,
            book: Mutex::new(book),
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if all faults had struck before this program was started.
    pub(crate) fn is_complete(&self) -> bool {
        self.book().left == 0
    }

    /// Returns the next run; `None` when all faults have struck.
    fn next(&self) -> Option<Run> {
        let mut book = self.book();
        if is_over() || book.left == 0 {
            return None;
        }
        while book.over.contains(&book.next) {
            book.next += 1;
        }
        let number = book.next;
        book.next += 1;
        // A run's faults depend on its number only, not on the stage or the time.
        let own = self.seed.wrapping_add(u64::from(number) << 32);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(own);
        let some = 1 + u64::from(random.next_u32()) % self.most;
        let faults = match self.away {
            Some(long) => plan::away(long, &mut random),
            None => plan::draw(some.min(book.left), &mut random),
        };
        book.left -= faults.len() as u64;
        Some(Run { number, faults })
    }

    /// Runs with faults on a stage of its own, until all faults are used.
    pub(crate) fn play(&self, number: usize) {
        let Some(mut run) = self.next() else { return };
        let mut stage = Stage::start(number);
        loop {
            let struck = stage.run(run.number, &run.faults);
            if is_over() {
                return;
            }
            let (struck, spared) = run.faults.split_at(struck);
            self.take(&mut stage, Some(run.number), struck, spared.len());
            match self.next() {
                Some(next) => run = next,
                None => break,
            }
        }
        stage.recover();
        if !is_over() {
            self.take(&mut stage, None, &[], 0);
        }
    }

    /// Adds a stage's new findings, and prints faults at once. Faults planned after the end of their run strike another
    /// one.
    fn take(&self, stage: &mut Stage, run: Option<u32>, struck: &[Planned], spared: usize) {
        let seen = std::mem::take(&mut stage.seen);
        let found = [&seen.not_whole, &seen.left, &seen.wrong];
        if found.iter().any(|found| !found.is_empty()) {
            println!("FOUND: {found:?}\nstruck by {struck:?}\n{}", stage.said());
        }
        if !seen.gave_up.is_empty() || seen.trials.failed > 0 {
            let (gave_up, failed) = (&seen.gave_up, seen.trials.failed);
            println!("run {run:?}: {failed} failed, {gave_up:?}, struck by {struck:?}");
        }
        let mut entry = Entry {
            run,
            seen,
            ..Entry::default()
        };
        for planned in struck {
            entry.struck[planned.fault.kind()] += 1;
        }
        let mut book = self.book();
        if let Some(journal) = &mut book.journal {
            journal.keep(&entry);
        }
        book.left += spared as u64;
        book.add(entry);
        println!("{}", told(&book, self.faults));
    }

    /// Prints everything; returns true if nothing is wrong.
    pub(crate) fn verdict(&self) -> bool {
        let book = self.book();
        println!("{:<32}{:>6}", "fault", "times");
        for (name, times) in NAMES.iter().zip(&book.struck) {
            println!("{name:<32}{times:>6}");
        }
        let seen = &book.seen;
        println!("{}", told(&book, self.faults));
        println!(
            "{} runs; {} of the trials that counted had all requests; {} runs could not have their agents, {} agents \
             gave up",
            seen.runs,
            seen.trials.full,
            seen.refused,
            seen.gave_up.len()
        );
        println!(
            "accepted with a window missing or twice: {}",
            seen.not_whole.len()
        );
        println!(
            "kernel settings or processes left behind: {}",
            seen.left.len()
        );
        let found = [&seen.not_whole, &seen.left, &seen.wrong];
        for one in found.into_iter().flatten() {
            println!("WRONG: {one}");
        }
        found.iter().all(|found| found.is_empty())
    }
}

/// The progress, in a line.
fn told(book: &Book, faults: u64) -> String {
    let Trials {
        accepted,
        lost,
        failed,
        ..
    } = book.seen.trials;
    let seen = &book.seen;
    format!(
        "{} of {faults} faults struck: {accepted} trials counted, {lost} lost an agent, {failed} failed; wrong: {}",
        book.struck(),
        seen.not_whole.len() + seen.left.len() + seen.wrong.len()
    )
}
