//! The systems' own counters in a run's trials, by cell, and their differences between cells.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use lab_archive::{PROBE, TrialData};
use lab_asked::{
    AskDifference, CountedMean, CountedSeries, Counting, OfTrial, Rules, Series, Sides, compare,
    from_jsonl,
};
use lab_plan::Plan;
use lab_trial::{Input, as_f64};

use crate::cells::is_of;
use crate::compare::{MOST_PAIRS, Trials, pairs};
use crate::duet::swapped;
use crate::model::{CellSummary, TrialAnalysis, Verdict};

/// The maximum number of counters of an ask in `result.json`: the largest of each column.
const MOST_COUNTERS: usize = 200;

/// The asks of the valid trials, by trial. A damaged or missing ask is a note of its trial.
type Asked = HashMap<u32, Vec<OfTrial>>;

/// The systems' own counters in a run: by cell, and their differences.
pub(crate) fn of_run(
    plan: &Plan,
    inputs: &[Input<'_>],
    (cells, trials): (&[CellSummary], &mut [TrialAnalysis]),
) -> Counting {
    let asked = asked(inputs, trials);
    Counting {
        counted: summarise(cells, trials, &asked),
        ask_differences: differences(plan, cells, trials, &asked),
    }
}

fn asked(inputs: &[Input<'_>], trials: &mut [TrialAnalysis]) -> Asked {
    let mut found = Asked::new();
    for trial in trials {
        let input = inputs.iter().find(|input| input.data.record.id == trial.id);
        let Some(input) = input else { continue };
        let asks = match &input.data.asked {
            None => continue,
            Some(Ok(bytes)) => from_jsonl(bytes).map_err(|error| format!("asked.jsonl: {error}")),
            Some(Err(problem)) => Err(problem.clone()),
        };
        let asks = match asks {
            Ok(asks) => asks,
            Err(problem) => {
                trial.notes.push(format!(
                    "What the system counts can't be read and is left out. {problem}"
                ));
                continue;
            }
        };
        let ramp_ms = as_f64(trial.ramp_ms);
        let hold = (
            ramp_ms + trial.warmup_cut_ms,
            ramp_ms + as_f64(trial.hold_ms),
        );
        let has_probe = input
            .manifest
            .steps
            .last()
            .is_some_and(|step| step == PROBE);
        let steps = input.manifest.steps.len() - usize::from(has_probe);
        let between = |from: f64, to: f64| transactions(input.data, steps, (from, to));
        let asks: Vec<OfTrial> = asks
            .iter()
            .map(|one| OfTrial::of(one, hold, between))
            .collect();
        trial
            .notes
            .extend(asks.iter().flat_map(|one| one.notes.iter().cloned()));
        if trial.verdict == Verdict::Valid {
            found.insert(trial.id, asks);
        }
    }
    found
}

/// Transactions between two moments; a window that is partly between them counts for that part.
fn transactions(data: &TrialData, steps: usize, (from, to): (f64, f64)) -> f64 {
    let part = |start: f64, end: f64| {
        let length = end - start;
        let within = (end.min(to) - start.max(from)).max(0.0);
        lab_stats::ratio(within, length).unwrap_or_default()
    };
    let windows = data.windows.iter().map(|window| {
        let own = window
            .steps
            .iter()
            .filter(|(step, _)| usize::from(**step) < steps);
        let ok: u64 = own.map(|(_, counts)| counts.ok).sum();
        as_f64(ok) * part(window.start_ms, window.end_ms)
    });
    windows.sum()
}

/// The counters of each cell, the largest of each column first.
fn summarise(cells: &[CellSummary], trials: &[TrialAnalysis], asked: &Asked) -> Vec<CountedSeries> {
    let by_cell: Vec<(&CellSummary, Vec<&OfTrial>)> = cells
        .iter()
        .map(|cell| {
            let own = trials
                .iter()
                .filter(|trial| is_of(cell, trial))
                .filter_map(|trial| asked.get(&trial.id));
            (cell, own.flatten().collect())
        })
        .collect();
    let all = || by_cell.iter().flat_map(|(_, own)| own);
    let names: BTreeSet<&str> = all().map(|one| one.name.as_str()).collect();
    let mut found = Vec::new();
    for name in names {
        let of_name = by_cell.iter().filter_map(|(cell, own)| {
            let own = own.iter().copied().filter(|one| one.name == name);
            let own: Vec<&OfTrial> = own.collect();
            (!own.is_empty()).then_some((*cell, own))
        });
        let of_name: Vec<(&CellSummary, Vec<&OfTrial>)> = of_name.collect();
        let mut units: BTreeMap<&Series, Option<&String>> = BTreeMap::new();
        for one in of_name.iter().flat_map(|(_, own)| own) {
            for series in one.values.keys() {
                units.entry(series).or_insert_with(|| one.units.get(series));
            }
        }
        let counted = units.into_iter().map(|(series, unit)| CountedSeries {
            measure: format!("ask.{name}.{series}"),
            ask: name.to_owned(),
            column: series.column.clone(),
            labels: series.labels.clone(),
            unit: unit.cloned(),
            cells: of_name
                .iter()
                .map(|(cell, own)| mean_of(cell, series, own))
                .collect(),
        });
        let mut counted: Vec<CountedSeries> = counted.filter(|one| one.size() > 0.0).collect();
        counted.sort_by(|a, b| b.size().total_cmp(&a.size()));
        let columns = counted
            .iter()
            .map(|one| &one.column)
            .collect::<BTreeSet<_>>()
            .len();
        let most = MOST_COUNTERS.div_ceil(columns.max(1));
        let mut taken: HashMap<String, usize> = HashMap::new();
        counted.retain(|one| {
            let taken = taken.entry(one.column.clone()).or_default();
            *taken += 1;
            *taken <= most
        });
        found.extend(counted);
    }
    found
}

/// The mean of a counter over the trials of a cell, of which these are the answers to its ask.
fn mean_of(cell: &CellSummary, series: &Series, own: &[&OfTrial]) -> CountedMean {
    let with = own.iter().filter(|one| one.transactions > 0.0);
    let values = with.filter_map(|one| one.values.get(series).copied().unwrap_or(Some(0.0)));
    let values: Vec<f64> = values.collect();
    CountedMean {
        label: cell.label.clone(),
        per_transaction: lab_stats::paired::mean(&values),
        trials: values.len(),
    }
}

/// Compares the counters of each cell with those of its baseline; empty for a run without asks.
fn differences(
    plan: &Plan,
    cells: &[CellSummary],
    trials: &[TrialAnalysis],
    asked: &Asked,
) -> Vec<AskDifference> {
    let pairs = pairs(plan, cells);
    if asked.is_empty() || pairs.is_empty() {
        return Vec::new();
    }
    let valid = Trials::that(trials, |trial| trial.verdict == Verdict::Valid);
    let swapped = swapped(plan);
    let rules = Rules {
        seed: plan.seed,
        smallest: plan.question.smallest_difference,
        swapped: plan.question.duet.then_some(&swapped),
    };
    let names: BTreeSet<&str> = asked
        .values()
        .flatten()
        .map(|one| one.name.as_str())
        .collect();
    let of_name = |name: &str| {
        let of_cell = |cell: &CellSummary, block: u32| {
            let asks = asked.get(&valid.at(cell, block)?.id)?;
            asks.iter().find(|one| one.name == name)
        };
        let sides = pairs.iter().take(MOST_PAIRS).map(|pair| Sides {
            a: &pair.a.label,
            b: &pair.b.label,
            blocks: (0..valid.blocks)
                .map(|block| Some((of_cell(pair.a, block)?, of_cell(pair.b, block)?)))
                .collect(),
        });
        compare(name, &sides.collect::<Vec<_>>(), rules)
    };
    names.into_iter().flat_map(of_name).collect()
}
