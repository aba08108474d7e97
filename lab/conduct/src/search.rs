//! The search for the load line: chooses the next trial and its cell. It judges nothing itself: the caller of the run
//! provides the outcomes, and the rest is pure.
//!
//! Cells take turns: each block has one trial of every cell whose search is not over, in random
//! order, so that a machine that drifts does not favour one of them.

use lab_stats::search::{Judgement, Next, Rules, Tried};
use lab_study::plan::{HowEnded, Plan, SearchEnd, Trial};
use lab_workload::timing;

/// A search in progress.
#[derive(Debug)]
pub(crate) struct Searching {
    rules: Rules,
    /// Trials of each cell, in their order.
    cells: Vec<Vec<Tried>>,
    /// The number of them from earlier invocations.
    known: Vec<usize>,
    seed: u64,
    block: u32,
    /// Cells that were chosen in this block.
    had: Vec<usize>,
}

/// A trial to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub(crate) cell: usize,
    pub(crate) block: u32,
    pub(crate) users: u32,
}

impl Searching {
    /// The search of a plan; `None` if it has none.
    pub(crate) fn of(plan: &Plan) -> Option<Self> {
        let search = plan.search.as_ref()?;
        Some(Self {
            rules: search.find.rules(plan.seed, plan.question.repeats),
            cells: vec![Vec::new(); search.cells.len()],
            known: vec![0; search.cells.len()],
            seed: plan.seed,
            block: 0,
            had: Vec::new(),
        })
    }

    /// Records the outcome of a trial of an earlier invocation.
    pub(crate) fn recall(&mut self, plan: &Plan, trial: &Trial, judged: Judgement) {
        self.learn(plan, trial, judged);
        self.known = self.cells.iter().map(Vec::len).collect();
    }

    /// Records the outcome of a trial.
    pub(crate) fn learn(&mut self, plan: &Plan, trial: &Trial, judged: Judgement) {
        let Some(cell) = cell_of(plan, trial) else {
            return;
        };
        if trial.block != self.block {
            self.block = trial.block;
            self.had.clear();
        }
        self.had.push(cell);
        self.cells[cell].push(Tried {
            level: trial.load.users,
            judgement: judged,
        });
    }

    /// The next trial, if the search is not over in all cells.
    pub(crate) fn next(&self) -> Option<Chosen> {
        let in_block = |block: u32, had: &[usize]| {
            let mut order: Vec<usize> = (0..self.cells.len()).collect();
            timing::shuffle(&mut order, self.seed, block);
            order.into_iter().find_map(|cell| {
                let next = self.rules.next_since(&self.cells[cell], self.known[cell]);
                match next {
                    Next::Try(users) if !had.contains(&cell) => Some(Chosen { cell, block, users }),
                    _ => None,
                }
            })
        };
        in_block(self.block, &self.had).or_else(|| in_block(self.block + 1, &[]))
    }

    /// Returns true if a trial of the same cell sustained its load already, so that more may be too much.
    pub(crate) fn has_carried(&self, plan: &Plan, trial: &Trial) -> bool {
        let carried = |tried: &Tried| {
            matches!(
                tried.judgement,
                Judgement::Carried | Judgement::Disturbed { held: true }
            )
        };
        let cell = cell_of(plan, trial).and_then(|cell| self.cells.get(cell));
        cell.is_some_and(|cell| cell.iter().any(carried))
    }

    /// How the search of each cell ended.
    pub(crate) fn ended(&self) -> Vec<SearchEnd> {
        let of = |(cell, known): (&Vec<Tried>, &usize)| SearchEnd {
            how: match self.rules.next_since(cell, *known) {
                Next::Done(end) => end.into(),
                Next::Try(_) => HowEnded::Interrupted,
            },
            users: cell.last().map(|last| last.level),
        };
        self.cells.iter().zip(&self.known).map(of).collect()
    }

    /// Estimated number of trials of the whole search, at least those made.
    pub(crate) fn expected(&self) -> usize {
        let usual = self.rules.usual_trials() as usize;
        let of = |(cell, known): (&Vec<Tried>, &usize)| match self.rules.next_since(cell, *known) {
            Next::Done(_) => cell.len(),
            Next::Try(_) => usual.max(cell.len() + 1),
        };
        self.cells.iter().zip(&self.known).map(of).sum()
    }
}

/// The index of a trial's cell among the searched ones.
fn cell_of(plan: &Plan, trial: &Trial) -> Option<usize> {
    let mut cells = plan.search.iter().flat_map(|search| &search.cells);
    cells.position(|other| other.cell == trial.cell && other.parameters == trial.parameters)
}

/// The result of a trial at its level, for the progress display; `None` if it is invalid.
pub(crate) fn words(users: u32, judged: Judgement) -> Option<String> {
    match judged {
        Judgement::Carried => Some(format!("{users} users are carried")),
        Judgement::NotCarried => Some(format!("{users} users are not carried")),
        Judgement::SystemFailed => {
            Some(format!("{users} users are not carried: the system failed"))
        }
        Judgement::Disturbed { held: true } => Some(format!(
            "{users} users held although the trial was disturbed: a lower bound, not a measurement"
        )),
        Judgement::Unprepared => Some(format!(
            "the trial at {users} users offered no load, so it says nothing about them"
        )),
        Judgement::Disturbed { held: false } | Judgement::Invalid => None,
    }
}

/// The trials that an earlier invocation chose, rebuilt from this plan: the archived one has no secrets.
pub(crate) fn archived_trials(archived: Plan, plan: &Plan) -> Vec<Trial> {
    let cells = |plan: &Plan| plan.search.clone().map_or(vec![], |search| search.cells);
    let (kept, own) = (cells(&archived), cells(plan));
    let mut trials = archived.trials;
    for trial in &mut trials {
        let at = kept.iter().position(|cell| cell.cell == trial.cell);
        if let Some(cell) = at.and_then(|at| own.get(at)) {
            trial.cell.clone_from(&cell.cell);
            trial.parameters.clone_from(&cell.parameters);
            trial.system.clone_from(&cell.system);
        }
    }
    trials
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io;

    use lab_study::plan::{PlanOptions, plan};
    use lab_study::{Files, Workload, load_study};

    use super::*;

    struct Texts(BTreeMap<&'static str, &'static str>);

    impl Files for Texts {
        fn read(&self, path: &str) -> io::Result<Vec<u8>> {
            let found = self.0.iter().find(|(name, _)| path.ends_with(*name));
            found
                .map(|(_, text)| text.as_bytes().to_vec())
                .ok_or_else(|| io::ErrorKind::NotFound.into())
        }
    }

    const STUDY: &str = "\
study: two
title: Two variants
workload: small
variants:
  a: { groupware: { http_threads: 1 } }
  b: { groupware: { http_threads: 2 } }
find:
  users: { min: 10, max: 1000 }
  subject_to: { response_time: [\"p(95) < 100ms\"] }
load: { ramp: 1s, hold: 10s }
";

    const WORKLOAD: &str = "\
workload: small
about: A request and a pause.
session:
  steps:
    - step: Look
      wait: 20ms
      request: GET /look
";

    fn searched() -> (Plan, Vec<Workload>) {
        let files = Texts(BTreeMap::from([
            ("s.study.yaml", STUDY),
            ("small.workload.yaml", WORKLOAD),
        ]));
        let loaded = load_study("s.study.yaml", &files, &[]).unwrap();
        let options = PlanOptions {
            speed: 1.0,
            seed: Some(5),
        };
        let plan = plan(&loaded.study, &options).unwrap();
        (plan, vec![Workload::clone(&loaded.study.workload)])
    }

    /// Runs a search in which cell `i` sustains `lines[i]` users, from the trials of `plan` on.
    fn go_on(plan: &mut Plan, workloads: &[Workload], lines: [u32; 2]) -> Searching {
        let mut searching = Searching::of(plan).unwrap();
        let mut at = 0;
        loop {
            if at == plan.trials.len() {
                let Some(chosen) = searching.next() else {
                    return searching;
                };
                let place = (at as u32 + 1, chosen.block);
                let trial = plan.search_trial(workloads, chosen.cell, chosen.users, place);
                plan.trials.push(trial.unwrap());
            }
            let trial = plan.trials[at].clone();
            let cells = &plan.search.as_ref().unwrap().cells;
            let cell = cells.iter().position(|c| c.cell == trial.cell).unwrap();
            let judged = if trial.load.users <= lines[cell] {
                Judgement::Carried
            } else {
                Judgement::NotCarried
            };
            searching.learn(plan, &trial, judged);
            at += 1;
        }
    }

    #[test]
    fn variants_take_turns_in_random_order_until_both_are_found() {
        let (mut plan, workloads) = searched();
        let expected = Searching::of(&plan).unwrap().expected();
        go_on(&mut plan, &workloads, [100, 300]);
        assert!(
            plan.trials.len().abs_diff(expected) < 12,
            "{expected} expected"
        );
        let mut first = Vec::new();
        for block in 0..6 {
            let of: Vec<_> = plan.trials.iter().filter(|t| t.block == block).collect();
            assert_eq!(of.len(), 2, "block {block}");
            assert_ne!(of[0].cell, of[1].cell);
            first.push(of[0].cell.clone());
        }
        assert!(
            first.iter().any(|cell| *cell != first[0]),
            "the order varies"
        );
    }

    #[test]
    fn a_search_that_was_cut_goes_on_as_it_would_have() {
        let (mut whole, workloads) = searched();
        go_on(&mut whole, &workloads, [77, 640]);
        for cut in [1, 2, 7, whole.trials.len()] {
            let mut resumed = whole.clone();
            resumed.trials.truncate(cut);
            go_on(&mut resumed, &workloads, [77, 640]);
            assert_eq!(resumed, whole);
        }
    }
}
