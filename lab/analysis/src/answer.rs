//! The answer to a study's question about its comparisons: by the deciding measures, in one sentence.
//!
//! Green means shown. A study asks for a verdict if it names the deciding measure, or if it has variants and enough
//! blocks for a verdict. Then, noise that leaves room for a relevant difference is no answer, and no answer is no
//! success. If a study only describes a factor's levels, that many blocks ask for any verdicts at all. All other
//! measures are exploratory: they change no result. This module knows no exit codes.

use lab_plan::{Decides, Question};
use lab_stats::exchange::Exchange;
use lab_trial::format::{list, plural, times};

use crate::model::{
    Analysis, Answer, Comparison, Decision, Difference, Measure, TrialAnalysis, Verdict,
    WorseAtMost,
};
use crate::sample::Standing;

/// The sentence for runs in which an error rate decides and nothing fails: without a comparison, nothing else decides.
const NOTHING_FAILED: &str = "Equal: no trial has a failure of the kind that decides.";

/// The maximum number of comparisons in a sentence; the tables have all.
const MOST_TOLD: usize = 3;

/// The deciding measures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deciding {
    /// In the order of importance.
    pub measures: Vec<Measure>,
    /// Whether the study or the caller names them.
    pub named: bool,
    /// Deciding measures for which interference leaves no verdict.
    pub open: Vec<Measure>,
}

impl Deciding {
    /// The named measure with its guard, or else the default measures for these trials.
    pub(crate) fn of(named: Option<Decides>, fixed_rate: bool, trials: &[TrialAnalysis]) -> Self {
        Self::named_or_usual(named, fixed_rate, &[trials])
    }

    /// The same of several runs.
    pub fn of_runs<'a>(named: Option<Decides>, runs: impl Iterator<Item = &'a Analysis>) -> Self {
        let runs: Vec<&Analysis> = runs.collect();
        let fixed_rate = runs.iter().all(|run| run.study.fixed_rate);
        let trials: Vec<_> = runs.iter().map(|run| run.trials.as_slice()).collect();
        Self::named_or_usual(named, fixed_rate, &trials)
    }

    fn named_or_usual(
        named: Option<Decides>,
        fixed_rate: bool,
        trials: &[&[TrialAnalysis]],
    ) -> Self {
        match named {
            None => Self::usual(fixed_rate, trials),
            Some(named) => Self::guarded(named.into(), trials),
        }
    }

    /// The named measure, with the error rate as a guard: failed requests are in no response time.
    fn guarded(named: Measure, trials: &[&[TrialAnalysis]]) -> Self {
        let guard = fails(trials).then_some(Measure::ErrorRate);
        let guard = guard.filter(|guard| *guard != named);
        Self {
            measures: std::iter::once(named).chain(guard).collect(),
            named: true,
            open: Vec::new(),
        }
    }

    /// [`Measure::DECIDING`], but the mean if a trial has too few samples for a p95, and the transfer rate if sessions
    /// transfer data. If the plan fixes the rate and every trial reached it, throughput is the plan's: it can't differ,
    /// and its noise prevents no answer.
    fn usual(fixed_rate: bool, trials_of: &[&[TrialAnalysis]]) -> Self {
        let trials = || trials_of.iter().copied().flatten();
        let valid = || trials().filter(|t| t.verdict == Verdict::Valid);
        let has_all = |measure: Measure| valid().all(|trial| measure.of(trial).is_some());
        let has_any = |measure: Measure| valid().any(|trial| measure.of(trial).is_some());
        let is_planned = fixed_rate && valid().all(|trial| trial.part_of_load().is_none());
        // Duets also have the mean: beside interference, only the mean can have a bound.
        let is_duet = trials().any(|trial| trial.duet.is_some());
        let mean = is_duet.then_some(Measure::Mean);
        let decides = |measure: &Measure| match measure {
            Measure::Throughput => !is_planned,
            // The mean replaces a missing p95.
            Measure::P95 => !is_duet || has_all(Measure::P95),
            _ => true,
        };
        let usual = Measure::DECIDING.into_iter().filter(decides);
        let usual = mean.into_iter().chain(usual).map(|measure| match measure {
            Measure::P95 if !has_all(Measure::P95) => Measure::Mean,
            Measure::Throughput if has_any(Measure::Transfer) => Measure::Transfer,
            usual => usual,
        });
        let guard = fails(trials_of).then_some(Measure::ErrorRate);
        Self {
            measures: usual.chain(guard).collect(),
            named: false,
            open: Vec::new(),
        }
    }

    /// All measures, the named one first.
    #[must_use]
    pub fn in_order(&self) -> Vec<Measure> {
        let named = self.measures.first().filter(|_| self.named);
        let others = Measure::ALL.into_iter().filter(|one| Some(one) != named);
        named.copied().into_iter().chain(others).collect()
    }

    /// Separates the measures whose comparisons no longer decide.
    pub(crate) fn keep(&mut self, comparisons: &[Comparison]) {
        let decides = |measure: &Measure| {
            let of_measure = || comparisons.iter().filter(|one| one.metric == *measure);
            of_measure().next().is_none() || of_measure().any(|one| one.decides)
        };
        let measures = std::mem::take(&mut self.measures);
        (self.measures, self.open) = measures.into_iter().partition(decides);
    }

    /// The sentence on the measures that don't decide; empty without any.
    fn left_open(&self) -> String {
        match self.open.is_empty() {
            true => String::new(),
            false => format!(
                " Other programs leave {} open, which so decides nothing.",
                list(&names(&self.open))
            ),
        }
    }

    /// Returns true if the measure is one of the deciding ones.
    #[must_use]
    pub fn has(&self, measure: Measure) -> bool {
        self.measures.contains(&measure)
    }

    /// The answer from the deciding measures.
    #[must_use]
    pub fn answer(&self, decision: Decision, sentence: String, is_gate: bool) -> Answer {
        Answer {
            decision,
            sentence,
            is_gate,
            decided_by: self.measures.clone(),
            named: self.named,
        }
    }
}

/// Returns true if a valid trial has a failed request. Then the error rate decides as well: a release that fails more
/// often is worse, however fast its responses are.
fn fails(trials: &[&[TrialAnalysis]]) -> bool {
    let trials = trials.iter().copied().flatten();
    let mut valid = trials.filter(|trial| trial.verdict == Verdict::Valid);
    valid.any(|trial| Measure::ErrorRate.of(trial) > Some(0.0))
}

/// Two cells whose comparison decides the answer.
pub(crate) struct AskedPair<'a> {
    pub(crate) a: &'a str,
    pub(crate) b: &'a str,
    /// Blocks with a valid trial of both cells.
    pub(crate) blocks: usize,
    /// Throughput follows the number of users, so it decides only between cells with equal numbers.
    pub(crate) same_users: bool,
    /// The completeness of their samples.
    pub(crate) standing: &'a Standing,
}

/// The answer to the study's question; `None` if the study asks nothing of its comparisons.
pub(crate) fn of_run(
    study: &Question,
    has_variants: bool,
    deciding: &Deciding,
    asked: &[AskedPair<'_>],
    comparisons: &[Comparison],
) -> Option<Answer> {
    let least = Exchange::least_blocks(study.duet);
    let has_blocks = study.trials as usize >= least;
    let wants_verdict = deciding.named || (has_variants && has_blocks);
    if asked.is_empty() || !(wants_verdict || has_blocks) {
        return None;
    }
    if has_variants && let Some(why) = worse(asked.iter().map(|pair| pair.standing)) {
        return Some(deciding.answer(Decision::Worse, why, true));
    }
    let decide: Vec<&Comparison> = comparisons.iter().filter(|one| one.decides).collect();
    if let Some(why) = unanswered(study, deciding, asked, &decide, wants_verdict) {
        let sentence = format!("Not answered: {why}.");
        return Some(deciding.answer(Decision::NotAnswered, sentence, has_variants));
    }
    if !wants_verdict {
        return None;
    }
    let decision = decision(&decide, has_variants);
    let mut sentence = sentence(decision, &decide, &between_cells);
    if has_variants {
        sentence.push_str(&besides(deciding, comparisons, &between_cells));
        sentence.push_str(&deciding.left_open());
    }
    Some(deciding.answer(decision, sentence, has_variants))
}

/// The sentence on the first candidate whose system failed although its baseline's did not.
#[must_use]
pub fn worse<'a>(mut standings: impl Iterator<Item = &'a Standing>) -> Option<String> {
    standings.find_map(|standing| match standing {
        Standing::Worse(why) => Some(format!("A regression: {why}.")),
        Standing::Complete | Standing::NoAnswer(_) => None,
    })
}

/// Measures that are worse although they don't decide, if the study names one deciding measure. They are reported and
/// change no result. Empty without any.
#[must_use]
pub fn besides(deciding: &Deciding, all: &[Comparison], sides: &Sides<'_>) -> String {
    let is_worse =
        |one: &&Comparison| !one.decides && one.verdict.is_some_and(Difference::is_worse);
    let worse: Vec<&Comparison> = all.iter().filter(is_worse).collect();
    match worse.split_first() {
        Some((first, rest)) if deciding.named => {
            let (b, a) = sides(first);
            let more = more(rest, sides, (&b, &a));
            format!(
                " Exploratory, and deciding nothing: {b} is worse than {a} in {}{more}.",
                figures(first)
            )
        }
        _ => String::new(),
    }
}

/// Why a requested verdict is missing. A study that describes its cells requests a verdict of any measure.
fn unanswered(
    study: &Question,
    deciding: &Deciding,
    asked: &[AskedPair<'_>],
    decide: &[&Comparison],
    wants_all: bool,
) -> Option<String> {
    let least = Exchange::least_blocks(study.duet);
    let lacking = |pair: &&AskedPair<'_>| {
        pair.standing.reason().is_some() || !has_verdicts(pair, deciding, decide, least)
    };
    let lack: Vec<&AskedPair<'_>> = asked.iter().filter(lacking).collect();
    if lack.is_empty() || (!wants_all && lack.len() < asked.len()) {
        return None;
    }
    let planned = study.trials as usize;
    if planned < least {
        let has = plural(planned, "block");
        return Some(format!(
            "the study has {has}, and {least} are the fewest for a verdict \
             (--set trials={least})"
        ));
    }
    let worst = lack.iter().min_by_key(|pair| pair.blocks)?;
    let missing = lack.iter().find_map(|pair| pair.standing.reason());
    if let Some(why) = missing.filter(|_| worst.blocks >= least) {
        return Some(why.to_owned());
    }
    let (a, b) = (worst.a, worst.b);
    if deciding.has(Measure::Throughput) && worst.blocks >= least && !worst.same_users {
        return Some(format!(
            "throughput follows the number of users, so it can't tell {a} from {b}"
        ));
    }
    if worst.blocks >= least {
        return Some(format!(
            "{} of {a} and {b} can't be compared: a trial has no such figure",
            list(&names(&deciding.measures))
        ));
    }
    let have = if worst.blocks == 1 { "has" } else { "have" };
    Some(format!(
        "{} of {planned} blocks {have} a valid trial of both {a} and {b}; {least} are needed",
        worst.blocks
    ))
}

/// Returns true if every deciding measure of a pair has a verdict.
fn has_verdicts(
    pair: &AskedPair<'_>,
    deciding: &Deciding,
    decide: &[&Comparison],
    least: usize,
) -> bool {
    let of_pair = |one: &&&Comparison| one.a == pair.a && one.b == pair.b;
    deciding.measures.iter().all(|measure| {
        let mut of_pair = decide.iter().filter(of_pair);
        let found = of_pair.find(|one| one.metric == *measure);
        // Two cells without a failure have no error rates to compare.
        let no_failure = measure.is_rate() && (!deciding.named || pair.blocks >= least);
        let others_decide = !deciding.named && !pair.same_users && *measure == Measure::Throughput;
        found.map_or(no_failure || others_decide, |one| one.verdict.is_some())
    })
}

fn names(measures: &[Measure]) -> Vec<String> {
    measures.iter().map(|m| m.name().to_owned()).collect()
}

/// The answer from comparisons that all have a verdict. Only a variant can be worse than another; for the levels of a
/// factor, a difference of either sign is an answer.
#[must_use]
pub fn decision(decide: &[&Comparison], is_gate: bool) -> Decision {
    let any = |wanted: &dyn Fn(Difference) -> bool| {
        let mut verdicts = decide.iter().filter_map(|one| one.verdict);
        verdicts.any(wanted)
    };
    let is_open = |verdict: Difference| match is_gate {
        true => verdict == Difference::CouldNotTell,
        false => !(verdict.is_shown() || verdict == Difference::Equal),
    };
    if is_gate && any(&Difference::is_worse) {
        Decision::Worse
    } else if any(&is_open) {
        Decision::CouldNotTell
    } else if !is_gate {
        Decision::Told
    } else if any(&Difference::is_better) {
        Decision::Better
    } else if any(&|verdict| verdict == Difference::NotWorse) {
        Decision::NotWorse
    } else {
        Decision::Equal
    }
}

/// The two compared cells, *b* and *a*, in words that can begin a sentence.
pub type Sides<'a> = dyn Fn(&Comparison) -> (String, String) + 'a;

fn between_cells(one: &Comparison) -> (String, String) {
    (one.b.clone(), one.a.clone())
}

/// The decision in a sentence, with the figures behind it.
#[must_use]
pub fn sentence(decision: Decision, decide: &[&Comparison], sides: &Sides<'_>) -> String {
    let of = |wanted: &dyn Fn(Difference) -> bool| -> Vec<&Comparison> {
        let is = |one: &&&Comparison| one.verdict.is_some_and(wanted);
        let mut found: Vec<&Comparison> = decide.iter().filter(is).copied().collect();
        // The ratio to the smallest relevant difference.
        let far = |one: &Comparison| one.ratio.ln().abs() / one.matters.max(f64::MIN_POSITIVE);
        found.sort_by(|x, y| far(y).total_cmp(&far(x)));
        found
    };
    let worst = |found: &[&Comparison], words: &str| {
        let (first, rest) = found.split_first()?;
        let (b, a) = sides(first);
        Some(format!(
            "{b} {words} {a}: {}{}",
            figures(first),
            more(rest, sides, (&b, &a))
        ))
    };
    let text = match decision {
        Decision::Worse => worst(&of(&Difference::is_worse), "is worse than")
            .map(|text| format!("A regression: {text}")),
        Decision::Better => worst(&of(&Difference::is_better), "is better than")
            .map(|text| format!("{text}; nothing that decides is worse")),
        Decision::CouldNotTell => {
            let is_open = |v: Difference| !v.is_shown() && v != Difference::Equal;
            let open = of(&is_open);
            let matters = open.first().map_or_else(String::new, |one| matters(one));
            let missing = open.iter().find_map(|one| one.reason.as_deref());
            let end = match missing {
                Some(why) => format!("; {why}"),
                None => format!(". From {matters} on it matters"),
            };
            // A shown difference stands first: open comparisons don't take it back.
            let shown = worst(&of(&Difference::is_better), "is better than");
            worst(&open, "beside").map(|text| match shown {
                Some(shown) => format!("{shown}. Could not tell: {text}{end}"),
                None => format!("Could not tell: {text}{end}"),
            })
        }
        Decision::Equal => worst(&of(&|_| true), "and"),
        Decision::NotWorse => worst(&of(&Difference::is_good), "is not worse than"),
        Decision::Told => worst(&of(&|_| true), "beside"),
        Decision::NotAnswered => None,
    };
    text.map_or_else(|| NOTHING_FAILED.to_owned(), |text| format!("{text}."))
}

/// Further comparisons; those of other pairs are named with their cells.
fn more(rest: &[&Comparison], sides: &Sides<'_>, first: (&str, &str)) -> String {
    let told = rest.iter().take(MOST_TOLD - 1).map(|one| {
        let (b, a) = sides(one);
        match (b.as_str(), a.as_str()) == first {
            true => format!(", {}", figures(one)),
            false => format!("; {b} beside {a}: {}", figures(one)),
        }
    });
    let mut text: String = told.collect();
    let left = rest.len().saturating_sub(MOST_TOLD - 1);
    if left > 0 {
        text.push_str(&format!("; and {left} more"));
    }
    text
}

/// `p95 response +12.0 % (95 % sure: +9.0 % to +15.0 %)`, or `p95 response equal within 2 %`.
fn figures(one: &Comparison) -> String {
    let name = one.metric.name();
    if one.verdict == Some(Difference::Equal) {
        return format!("{name} {}", verdict_words(one));
    }
    let sure = one.interval.map_or_else(
        || "unbounded".to_owned(),
        |(low, high)| {
            let (low, high) = (one.metric.change(low), one.metric.change(high));
            format!("95 % sure: {low} to {high}")
        },
    );
    // A bound beyond twice the time carries no information.
    let bound = one.worse_at_most.filter(|bound| bound.part < 1.0);
    let at_most = bound.map(|bound| at_most(bound, one));
    let at_most = at_most.unwrap_or_default();
    format!("{name} {} ({sure}{at_most})", one.metric.change(one.ratio))
}

/// `; at most 3.1 % worse, with what interference hides`: the shown bound.
fn at_most(bound: WorseAtMost, one: &Comparison) -> String {
    let part = bound.part.max(0.0) * 100.0;
    let unit = if one.metric.is_rate() {
        " points"
    } else {
        " %"
    };
    let hidden = match bound.stretch > 1.0 {
        true => ", with what interference may hide",
        false => "",
    };
    format!("; at most {part:.1}{unit} worse{hidden}")
}

/// The smallest relevant difference: `2 %`, of a rate `0.1 points`.
fn matters(one: &Comparison) -> String {
    let unit = if one.metric.is_rate() { "points" } else { "%" };
    format!("{} {unit}", times(one.matters * 100.0))
}

/// The verdict with its margin: `equal within 2 %`.
#[must_use]
pub fn verdict_words(one: &Comparison) -> String {
    let within = || matters(one);
    match one.verdict {
        Some(Difference::Equal) => format!("equal within {}", within()),
        Some(Difference::NotWorse) => format!("not worse by {}", within()),
        Some(verdict) => verdict.name().to_owned(),
        None => "no verdict".to_owned(),
    }
}
