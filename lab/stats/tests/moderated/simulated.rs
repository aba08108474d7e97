//! Simulated studies of profiles: samples of functions by block, with known differences.

use lab_stats::common_factor::common_factor;
use lab_stats::moderated::{Pair, moderated, tested};
use lab_stats::paired::max_t_scaled;
use lab_stats::verdict::ALPHA;

use crate::noise::Noise;

/// The true state of the studies.
#[derive(Clone)]
pub(crate) struct Truth {
    pub(crate) blocks: usize,
    /// Samples of a trial.
    pub(crate) samples: f64,
    /// The functions' parts of the whole; the first is the one that differs.
    pub(crate) shares: Vec<f64>,
    /// The increase of the first function in *b*, as a fraction of the whole.
    pub(crate) added: f64,
    /// Standard deviations apart from sampling, from trial to trial: of each function, and of the whole trial.
    pub(crate) function_sd: f64,
    pub(crate) trial_sd: f64,
    /// This many functions have one caller, whose total is a column, too; 0: self samples only.
    pub(crate) by_caller: usize,
}

impl Truth {
    /// Functions vary by 1 % and trials by 2 % apart from sampling. `share` is that of the first function, the others
    /// share the rest equally.
    pub(crate) fn usual(blocks: usize, samples: f64, share: f64) -> Self {
        let functions = 400;
        let mut shares = vec![(1.0 - share) / (functions - 1) as f64; functions];
        shares[0] = share;
        Self {
            blocks,
            samples,
            shares,
            added: 0.0,
            function_sd: 0.01,
            trial_sd: 0.02,
            by_caller: 0,
        }
    }

    /// Returns the samples of a study, by function and block; then those of callers.
    fn draw(&self, noise: &mut Noise) -> Vec<Vec<Pair>> {
        let mut columns = vec![Vec::with_capacity(self.blocks); self.shares.len()];
        for _ in 0..self.blocks {
            let mut trial = |added: f64| -> Vec<f64> {
                let whole = self.samples * (self.trial_sd * noise.normal()).exp();
                let one = |(at, share): (usize, &f64)| {
                    let share = if at == 0 { share + added } else { *share };
                    let mean = whole * share * (self.function_sd * noise.normal()).exp();
                    noise.poisson(mean)
                };
                self.shares.iter().enumerate().map(one).collect()
            };
            let (a, b) = (trial(0.0), trial(self.added));
            for (column, (a, b)) in columns.iter_mut().zip(a.into_iter().zip(b)) {
                column.push(Pair { a, b });
            }
        }
        if self.by_caller > 0 {
            let callers: Vec<_> = columns.chunks(self.by_caller).map(total).collect();
            columns.push(total(&callers));
            columns.extend(callers);
        }
        columns
    }

    /// Simulates a study and judges it.
    pub(crate) fn study(&self, noise: &mut Noise) -> Shown {
        let columns = self.draw(noise);
        let own: Vec<&[Pair]> = columns[..self.shares.len()]
            .iter()
            .map(Vec::as_slice)
            .collect();
        let factor = common_factor(&own);
        let kept: Vec<usize> = tested(&columns).iter().map(|group| group[0]).collect();
        let of: Vec<&[Pair]> = kept.iter().map(|at| columns[*at].as_slice()).collect();
        let found = moderated(&of, &factor);
        let some = |row: &Vec<f64>| row.iter().copied().map(Some).collect();
        let rows: Vec<Vec<Option<f64>>> = found.differences.iter().map(some).collect();
        let mut shown = Shown::default();
        for (at, p) in kept.iter().zip(max_t_scaled(&rows, &found.scales, 1)) {
            // The callers of the differing function differ, too.
            let holds_first = *at == 0 || (*at >= self.shares.len() && *at < self.shares.len() + 2);
            let is_shown = p.joint <= ALPHA;
            shown.first |= *at == 0 && is_shown;
            shown.another |= !holds_first && is_shown;
            shown.any |= is_shown;
        }
        shown
    }

    /// Counts the results of this number of studies.
    pub(crate) fn studies(&self, n: usize, noise: &mut Noise) -> Counts {
        let mut counts = Counts::default();
        for _ in 0..n {
            let shown = self.study(noise);
            counts.first += usize::from(shown.first);
            counts.another += usize::from(shown.another);
            counts.any += usize::from(shown.any);
        }
        counts
    }
}

fn total(columns: &[Vec<Pair>]) -> Vec<Pair> {
    let sum = |block: usize| {
        let of = |side: fn(&Pair) -> f64| columns.iter().map(|column| side(&column[block])).sum();
        Pair {
            a: of(|pair| pair.a),
            b: of(|pair| pair.b),
        }
    };
    (0..columns[0].len()).map(sum).collect()
}

/// The result of a study.
#[derive(Default)]
pub(crate) struct Shown {
    /// The function that differs.
    pub(crate) first: bool,
    /// A function that doesn't.
    pub(crate) another: bool,
    pub(crate) any: bool,
}

/// Number of studies by result.
#[derive(Default, Debug)]
pub(crate) struct Counts {
    pub(crate) first: usize,
    pub(crate) another: usize,
    pub(crate) any: usize,
}
