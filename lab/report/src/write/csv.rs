//! `steps.csv`, one row per trial and step, `transactions.csv`, one row per trial and named transaction, and
//! `comparisons.csv`, one row per comparison: for spreadsheets and scripts.

use lab_comparison::RunComparison;
use lab_plan::Cell;

use crate::Analysis;
use crate::format::level;
use crate::model::{Comparison, Difference, StepAnalysis, Times, TransactionAnalysis};
use crate::model::{TrialAnalysis, Verdict};
use crate::sections::Entries;

const TIMES: [&str; 8] = ["mean", "min", "p50", "p90", "p95", "p99", "p999", "max"];

/// One row per trial and step. A missing figure is an empty field.
#[must_use]
pub fn steps_csv(analysis: &Analysis) -> String {
    let measured = measured(analysis);
    let mut lines = vec![header(analysis, &measured)];
    for trial in &analysis.trials {
        let row = |step| row(analysis, trial, step, &measured);
        lines.extend(trial.steps.iter().map(row));
    }
    text(lines)
}

/// One row per trial and named transaction, the session first. A missing figure is an empty field.
#[must_use]
pub fn transactions_csv(analysis: &Analysis) -> String {
    let mut header = place_header(analysis);
    let counts = [
        "transaction",
        "predicted",
        "completed",
        "failed",
        "skipped",
        "unfinished",
        "completed_per_s",
    ];
    header.extend(counts.map(str::to_owned));
    header.extend(TIMES.iter().map(|name| format!("time_{name}_ms")));
    header.extend(TIMES.iter().map(|name| format!("elapsed_{name}_ms")));
    header.push("attempt_of".to_owned());
    let mut lines = vec![header];
    for trial in &analysis.trials {
        let named = trial.named_transactions.iter();
        lines.extend(named.map(|one| transaction(analysis, trial, one)));
    }
    text(lines)
}

fn transaction(
    analysis: &Analysis,
    trial: &TrialAnalysis,
    one: &TransactionAnalysis,
) -> Vec<String> {
    let mut row = place(analysis, trial);
    row.push(one.name.clone());
    row.push(count(one.predicted));
    row.extend([one.completed, one.failed, one.skipped, one.unfinished].map(|n| n.to_string()));
    row.push(number(one.completed_per_s));
    row.extend(times(&one.time_ms).map(number));
    row.extend(times(&one.elapsed_ms).map(number));
    row.push(count(trial.attempt_of));
    row
}

/// The column names of [`place`].
fn place_header(analysis: &Analysis) -> Vec<String> {
    let of_trial = ["trial", "block", "verdict"].map(str::to_owned);
    let factors = analysis.study.factors.iter().cloned();
    of_trial.into_iter().chain(factors).collect()
}

/// The columns that identify a row's trial.
fn place(analysis: &Analysis, trial: &TrialAnalysis) -> Vec<String> {
    let verdict = match trial.verdict {
        Verdict::Valid => "valid",
        Verdict::Invalid => "invalid",
    };
    let mut row = vec![
        trial.id.to_string(),
        trial.block.to_string(),
        verdict.to_owned(),
    ];
    row.extend(factors(analysis, &trial.cell));
    row
}

fn count(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// The names of the measures from responses, each once: each has columns at the end of a row.
fn measured(analysis: &Analysis) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for one in analysis.trials.iter().flat_map(|trial| &trial.measures) {
        if !names.contains(&one.name.as_str()) {
            names.push(&one.name);
        }
    }
    names
}

/// One row per comparison: the control's, those of cells, those of main effects.
#[must_use]
pub fn comparisons_csv(analysis: &Analysis) -> String {
    let mut lines = vec![comparison_header("kind", "factor")];
    for (kind, comparisons) in [
        ("control", &analysis.control),
        ("cells", &analysis.comparisons),
        ("over all cells", &analysis.main_effects),
    ] {
        lines.extend(comparisons.iter().map(|one| comparison_row(kind, one)));
    }
    text(lines)
}

/// One row per cell and measure of two runs.
#[must_use]
pub fn runs_csv(runs: &RunComparison) -> String {
    let mut lines = vec![comparison_header("kind", "cell")];
    let rows = runs.comparisons.iter();
    lines.extend(rows.map(|one| comparison_row("runs", one)));
    text(lines)
}

fn comparison_header(kind: &str, factor: &str) -> Vec<String> {
    [
        kind,
        factor,
        "a",
        "b",
        "measure",
        "unit",
        "blocks",
        "mean_a",
        "mean_b",
        "difference",
        "ratio",
        "ratio_low",
        "ratio_high",
        "p",
        "p_single",
        "smallest_difference",
        "verdict",
        "reason",
    ]
    .map(str::to_owned)
    .to_vec()
}

fn comparison_row(kind: &str, one: &Comparison) -> Vec<String> {
    vec![
        kind.to_owned(),
        one.factor.clone(),
        one.a.clone(),
        one.b.clone(),
        one.metric.name().to_owned(),
        one.metric.unit().to_owned(),
        one.blocks.to_string(),
        number(Some(one.mean_a)),
        number(Some(one.mean_b)),
        number(Some(one.difference)),
        number(Some(one.ratio)),
        number(one.interval.map(|interval| interval.0)),
        number(one.interval.map(|interval| interval.1)),
        number(one.p),
        number(one.p_single),
        number(Some(one.smallest_difference)),
        one.verdict
            .map(Difference::name)
            .unwrap_or_default()
            .to_owned(),
        one.reason.clone().unwrap_or_default(),
    ]
}

fn text(lines: Vec<Vec<String>>) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for line in lines {
        writer
            .write_record(line)
            .expect("rows have one length and memory takes all writes");
    }
    let bytes = writer.into_inner().expect("memory takes all writes");
    String::from_utf8(bytes).expect("fields are text")
}

fn header(analysis: &Analysis, measured: &[&str]) -> Vec<String> {
    let mut header = place_header(analysis);
    header.extend(
        [
            "step",
            "transactions",
            "predicted",
            "errors",
            "skipped",
            "wait_ms",
            "wait_planned_ms",
        ]
        .map(str::to_owned),
    );
    header.extend(TIMES.iter().map(|name| format!("response_{name}_ms")));
    header.extend(TIMES.iter().map(|name| format!("service_{name}_ms")));
    header.extend(["published_mean_ms", "ratio", "speed"].map(str::to_owned));
    header.extend(["over_time_limit", "time_limit_ms", "attempt_of"].map(str::to_owned));
    for name in measured {
        header.push(format!("{name}_count"));
        header.extend(TIMES.iter().map(|figure| format!("{name}_{figure}")));
    }
    header
}

fn row(
    analysis: &Analysis,
    trial: &TrialAnalysis,
    step: &StepAnalysis,
    measured: &[&str],
) -> Vec<String> {
    let mut row = place(analysis, trial);
    row.extend([
        step.name.clone(),
        step.transactions.to_string(),
        step.predicted.to_string(),
        step.errors.to_string(),
        step.skipped.to_string(),
        number(step.wait_ms),
        number(step.wait_planned_ms),
    ]);
    row.extend(times(&step.response_ms).map(number));
    row.extend(times(&step.service_ms).map(number));
    let published = published_mean(analysis, trial, step);
    let valid = trial.verdict == Verdict::Valid;
    let ours = step.response_ms.mean.filter(|_| valid);
    row.push(number(published));
    row.push(number(
        ours.zip(published)
            .and_then(|(a, b)| lab_stats::ratio(a, b)),
    ));
    row.push(analysis.study.speed.to_string());
    row.push(step.bound.map_or(0, |bound| bound.over).to_string());
    row.push(number(step.bound.map(|bound| bound.time_limit_ms)));
    row.push(count(trial.attempt_of));
    for name in measured {
        let of_step = trial.measures.iter();
        let mut found = of_step.filter(|one| one.step == step.name && one.name == *name);
        let values = found.next().map(|one| one.values);
        row.push(count(values.map(|values| values.count)));
        row.extend(times(&values.unwrap_or_default()).map(number));
    }
    row
}

fn factors(analysis: &Analysis, cell: &Cell) -> Vec<String> {
    let names = analysis.study.factors.iter();
    names
        .map(|name| cell.get(name).map(level).unwrap_or_default())
        .collect()
}

fn times(times: &Times) -> [Option<f64>; 8] {
    [
        times.mean, times.min, times.p50, times.p90, times.p95, times.p99, times.p999, times.max,
    ]
}

fn published_mean(analysis: &Analysis, trial: &TrialAnalysis, step: &StepAnalysis) -> Option<f64> {
    let at = analysis
        .cells
        .iter()
        .position(|cell| cell.cell == trial.cell)?;
    Entries::of_step(analysis, &step.name).at(at)?.published
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| {
        // Four decimals, and four digits for small values, so that no p is 0.
        let decimals = match value.abs() {
            small if small > 0.0 && small < 0.1 => 3 - small.log10().floor() as i32,
            _ => 4,
        };
        let decimals = usize::try_from(decimals).unwrap_or(4).min(20);
        let text = format!("{value:.decimals$}");
        let text = text.trim_end_matches('0').trim_end_matches('.');
        text.to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_small_is_not_nothing() {
        let texts = [0.0, 1_234.567_89, 0.5, 0.1, 0.04, 2.0 / 65_536.0, 1e-300];
        let texts = texts.map(|value| number(Some(value)));
        let expected = ["0", "1234.5679", "0.5", "0.1", "0.04", "0.00003052", "0"];
        assert_eq!(texts, expected);
    }
}
