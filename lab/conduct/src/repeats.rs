//! Which trial of a plan is next, and which is repeated. Pure: the outcomes so far decide.
//!
//! A trial that is invalid for a reason outside system and generator is repeated at the end of its block, up to a
//! maximum. A trial that ended before any load is repeated once. None is repeated for its result, nor for a persistent
//! cause, nor while the machine stays disturbed after the maximum wait.

use std::collections::BTreeMap;

use lab_stats::search::Judgement;

use crate::judged::Judged;

/// After so many waits for an idle machine in vain, in a row, repeats stop.
const IN_VAIN: u32 = 3;

/// The trials of a plan, in its order, and their outcomes.
#[derive(Debug, Clone)]
pub(crate) struct Repeats {
    trials: Vec<State>,
    /// Id of the next attempt.
    id: u32,
    /// Ids per attempt: two for a duet.
    each: u32,
    /// Number of last attempts that were disturbed after a wait for an idle machine in vain.
    in_vain: u32,
}

#[derive(Debug, Clone, Copy)]
struct State {
    id: u32,
    block: u32,
    ran: bool,
    /// Its last attempt is invalid, and may be repeated.
    open: bool,
    /// Its last attempt is the first of this invocation that ended before any load: it runs once more.
    again: bool,
    /// An attempt of this invocation ended before any load.
    unprepared: bool,
    /// It does not run any more in this invocation.
    left_out: bool,
    /// Remaining repeats.
    left: u32,
}

/// The next trial to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Next {
    /// The trial's index in the plan.
    pub(crate) at: usize,
    /// The id of the repeat; `None` the first time.
    pub(crate) attempt: Option<u32>,
}

impl Repeats {
    /// `trials` are the ids and blocks of a plan's trials, in its order.
    pub(crate) fn new(trials: impl Iterator<Item = (u32, u32)>, repeats: u32) -> Self {
        let state = |(id, block)| State {
            id,
            block,
            ran: false,
            open: false,
            again: false,
            unprepared: false,
            left_out: false,
            left: repeats,
        };
        let trials: Vec<State> = trials.map(state).collect();
        let id = trials.iter().map(|one| one.id).max().unwrap_or(0) + 1;
        Self {
            trials,
            id,
            each: 1,
            in_vain: 0,
        }
    }

    /// Makes each trial stand for two, itself and the one with the next id.
    pub(crate) fn in_pairs(mut self) -> Self {
        self.id += 1;
        self.each = 2;
        self
    }

    /// Restores the trials of an earlier invocation, with the outcomes of their attempts in order. All repeats are
    /// available again, so that a resumed run can complete what is missing.
    pub(crate) fn recall(&mut self, judged: &BTreeMap<u32, Vec<(u32, Judged)>>) {
        for state in &mut self.trials {
            let attempts = judged.get(&state.id).map_or(&[][..], Vec::as_slice);
            for (id, judged) in attempts {
                self.id = self.id.max(id + self.each);
                let valid = state.ran && !state.open && !state.again;
                state.open = judged.may_be_repeated() && !valid;
                state.again = judged.judgement == Judgement::Unprepared && !valid;
                state.ran = true;
            }
        }
    }

    /// Runs these once more, whatever the study's repeats: their archived attempts are unfinished.
    pub(crate) fn owe(&mut self, ids: &[u32]) {
        for state in self.trials.iter_mut().filter(|one| ids.contains(&one.id)) {
            state.left = state.left.max(1);
        }
    }

    /// Records the outcome of an attempt, and whether the wait for an idle machine before it was in vain. Returns true
    /// if from now on nothing is repeated until a wait succeeds.
    pub(crate) fn learn(&mut self, next: Next, judged: &Judged, in_vain: bool) -> bool {
        self.end_blocks_before(self.trials[next.at].block);
        let state = &mut self.trials[next.at];
        state.ran = true;
        state.open = judged.may_be_repeated();
        let is_unprepared = judged.judgement == Judgement::Unprepared;
        state.again = is_unprepared && !state.unprepared;
        state.unprepared |= is_unprepared;
        if let Some(id) = next.attempt {
            state.left = state.left.saturating_sub(1);
            self.id = id + self.each;
        }
        let was_hopeless = self.is_hopeless();
        self.in_vain = match in_vain && judged.may_be_repeated() {
            true => self.in_vain + 1,
            false => 0,
        };
        self.is_hopeless() && !was_hopeless
    }

    /// A repeat belongs to the end of its block: missing repeats of a block are left to another invocation.
    fn end_blocks_before(&mut self, block: u32) {
        for state in self.trials.iter_mut().filter(|one| one.block < block) {
            (state.left, state.again) = (0, false);
        }
    }

    fn is_hopeless(&self) -> bool {
        self.in_vain >= IN_VAIN
    }

    /// Records a skipped attempt: none takes its place in this invocation.
    pub(crate) fn leave_out(&mut self, next: Next) {
        self.trials[next.at].left_out = true;
    }

    /// The next of its block; then the repeats of the block, fewest repeats first; then the next block.
    pub(crate) fn next(&self) -> Option<Next> {
        let mut blocks: Vec<u32> = self.trials.iter().map(|one| one.block).collect();
        blocks.dedup();
        blocks.into_iter().find_map(|block| {
            let of_block = || {
                let all = self.trials.iter().enumerate();
                all.filter(move |(_, one)| one.block == block && !one.left_out)
            };
            let first = of_block().find(|(_, one)| !one.ran);
            let first = first.map(|(at, _)| Next { at, attempt: None });
            let again = || {
                let open = of_block().filter(|(_, one)| self.is_repeated(one));
                // The first of those with most remaining repeats.
                let chosen = open.rev().max_by_key(|(_, one)| one.left)?;
                Some(Next {
                    at: chosen.0,
                    attempt: Some(self.id),
                })
            };
            first.or_else(again)
        })
    }

    fn is_repeated(&self, one: &State) -> bool {
        one.again || (one.open && one.left > 0 && !self.is_hopeless())
    }

    /// The number of trials that were disturbed in every attempt.
    pub(crate) fn disturbed(&self) -> usize {
        self.trials.iter().filter(|one| one.open).count()
    }

    /// The indices of the trials that are still to run, each once, including repeats.
    pub(crate) fn outstanding(&self) -> impl Iterator<Item = usize> + '_ {
        let all = self.trials.iter().enumerate();
        all.filter(|(_, one)| !one.left_out && (!one.ran || self.is_repeated(one)))
            .map(|(at, _)| at)
    }
}

#[cfg(test)]
mod simulation;

#[cfg(test)]
mod tests {
    use super::*;

    fn valid() -> Judged {
        Judged::default()
    }

    fn disturbed() -> Judged {
        Judged::made_up("other programs", true)
    }

    fn broken() -> Judged {
        Judged::made_up("waits", false)
    }

    /// Two blocks of three trials.
    fn fresh(repeats: u32) -> Repeats {
        Repeats::new((1..=6).map(|id| (id, (id - 1) / 3)), repeats)
    }

    /// All attempts, as (trial, id of the attempt); `judge` receives the trial and the number of its earlier attempts.
    fn order(repeats: &mut Repeats, judge: impl Fn(u32, usize) -> Judged) -> Vec<(u32, u32)> {
        let mut ran = Vec::new();
        while let Some(next) = repeats.next() {
            let trial = repeats.trials[next.at].id;
            let before = ran.iter().filter(|(of, _)| *of == trial).count();
            repeats.learn(next, &judge(trial, before), false);
            ran.push((trial, next.attempt.unwrap_or(trial)));
            assert!(ran.len() < 100, "{ran:?}");
        }
        ran
    }

    #[test]
    fn valid_trials_run_once_in_the_order_of_the_plan() {
        let ran = order(&mut fresh(3), |_, _| valid());
        assert_eq!(ran, [(1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (6, 6)]);
    }

    #[test]
    fn what_was_disturbed_is_repeated_at_the_end_of_its_block() {
        let ran = order(&mut fresh(3), |trial, before| match (trial, before) {
            (1, 0) | (2, 0..=1) | (6, 0) => disturbed(),
            _ => valid(),
        });
        let expected = [
            (1, 1),
            (2, 2),
            (3, 3),
            (1, 7),
            (2, 8),
            (2, 9),
            (4, 4),
            (5, 5),
            (6, 6),
            (6, 10),
        ];
        assert_eq!(ran, expected);
    }

    #[test]
    fn repeats_end_and_are_for_what_is_outside_alone() {
        let ran = order(&mut fresh(2), |trial, _| match trial {
            3 => disturbed(),
            4 => broken(),
            _ => valid(),
        });
        let of = |trial| ran.iter().filter(|(of, _)| *of == trial).count();
        assert_eq!((of(3), of(4), ran.len()), (3, 1, 8));
        let none = order(&mut fresh(0), |_, _| disturbed());
        assert_eq!(none.len(), 6);
    }

    #[test]
    fn a_trial_without_load_is_repeated_once_and_again_by_a_resumed_run() {
        let unprepared = || Judged {
            judgement: Judgement::Unprepared,
            ..Judged::made_up("preparation", false)
        };
        // Also if a study allows no repeats.
        for repeats in [0, 3] {
            let ran = order(&mut fresh(repeats), |trial, before| match (trial, before) {
                (2, _) | (5, 0) => unprepared(),
                _ => valid(),
            });
            let expected = [
                (1, 1),
                (2, 2),
                (3, 3),
                (2, 7),
                (4, 4),
                (5, 5),
                (6, 6),
                (5, 8),
            ];
            assert_eq!(ran, expected);
        }
        let mut resumed = fresh(3);
        let both = vec![(2, unprepared()), (7, unprepared())];
        let one = |id| (id, vec![(id, valid())]);
        let mut earlier = BTreeMap::from([1, 3, 4, 5, 6].map(one));
        earlier.insert(2, both);
        resumed.recall(&earlier);
        assert_eq!(order(&mut resumed, |_, _| valid()), [(2, 8)]);
    }

    #[test]
    fn nothing_is_repeated_while_every_wait_is_in_vain() {
        let mut repeats = fresh(3);
        let mut ran = Vec::new();
        while let Some(next) = repeats.next() {
            let trial = repeats.trials[next.at].id;
            // The machine is idle again from trial 5 on.
            let (judged, in_vain) = match trial {
                1..=4 => (disturbed(), true),
                _ => (valid(), false),
            };
            let told = repeats.learn(next, &judged, in_vain);
            assert_eq!(told, trial == 3);
            ran.push((trial, next.attempt.unwrap_or(trial)));
            if ran.len() == 7 {
                break;
            }
        }
        // The first block's repeats are left to another invocation; the second's run at its end.
        let expected = [(1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (6, 6), (4, 7)];
        assert_eq!(ran, expected);
        assert_eq!(repeats.disturbed(), 4);
    }

    #[test]
    fn a_valid_trial_on_a_busy_machine_keeps_up_hope() {
        let mut repeats = fresh(1);
        for judged in [disturbed(), disturbed(), valid()] {
            let next = repeats.next().unwrap();
            assert!(!repeats.learn(next, &judged, true));
        }
        assert_eq!(repeats.next().map(|next| next.attempt), Some(Some(7)));
    }

    #[test]
    fn of_a_duet_two_are_repeated_together() {
        // Trials 1 and 2, 3 and 4, of two blocks; the id of a pair is that of its first trial.
        let of_plan = [(1, 0), (3, 1)];
        let mut repeats = Repeats::new(of_plan.into_iter(), 3).in_pairs();
        let judge = |trial, before| match (trial, before) {
            (1, 0..=1) | (3, 0) => disturbed(),
            _ => valid(),
        };
        let ran = order(&mut repeats, judge);
        assert_eq!(ran, [(1, 1), (1, 5), (1, 7), (3, 3), (3, 9)]);
        let mut resumed = Repeats::new(of_plan.into_iter(), 3).in_pairs();
        let earlier = vec![(1, disturbed()), (5, disturbed())];
        resumed.recall(&BTreeMap::from([(1, earlier), (3, vec![(3, valid())])]));
        assert_eq!(order(&mut resumed, |_, _| valid()), [(1, 7)]);
    }

    #[test]
    fn what_was_left_out_never_comes_back() {
        let mut repeats = fresh(3);
        let first = repeats.next().unwrap();
        repeats.leave_out(first);
        let ran = order(&mut repeats, |trial, before| match (trial, before) {
            (2, 0) => disturbed(),
            _ => valid(),
        });
        assert_eq!(ran, [(2, 2), (3, 3), (2, 7), (4, 4), (5, 5), (6, 6)]);
        assert_eq!(repeats.outstanding().count(), 0);
    }

    #[test]
    fn a_resumed_run_repeats_what_is_missing_and_nothing_else() {
        let mut resumed = fresh(1);
        resumed.recall(&BTreeMap::from([
            (1, vec![(1, disturbed()), (7, valid())]),
            (2, vec![(2, disturbed()), (8, disturbed())]),
            (3, vec![(3, broken())]),
            (4, vec![(4, valid())]),
        ]));
        assert_eq!(resumed.outstanding().collect::<Vec<_>>(), [1, 4, 5]);
        let ran = order(&mut resumed, |_, _| disturbed());
        assert_eq!(ran, [(2, 9), (5, 5), (6, 6), (5, 10), (6, 11)]);
    }
}
