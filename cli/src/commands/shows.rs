//! What a study can and can't show: whether its blocks can reach a verdict, and how many a
//! difference needs by the spread of an earlier run.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use lab_analysis::model::{Analysis, Measure, Verdict};
use lab_stats::power::{MOST_BLOCKS, Sought, USUAL_POWER, needed_blocks, paired_spread};
use lab_stats::verdict::{ALPHA, LEAST_BLOCKS};
use lab_study::Study;
use lab_study::model::Cell;
use lab_study::plan::Plan;

use crate::commands::report;
use crate::exit::Failure;
use crate::length::total;
use crate::words::duration;

/// The differences that are asked about.
const EFFECTS: [f64; 3] = [0.02, 0.05, 0.10];
/// The spreads that stand for those of a run that isn't there yet.
const SPREADS: [f64; 3] = [0.02, 0.03, 0.05];
/// What an earlier run tells the spread of.
const MEASURES: [Measure; 4] = [
    Measure::Mean,
    Measure::P95,
    Measure::Throughput,
    Measure::Cpu,
];

/// How far differences spread in an earlier run.
pub(crate) struct Earlier {
    /// The run as named.
    name: String,
    /// By measure, where the run tells.
    spreads: Vec<(Measure, Option<f64>)>,
    /// Whether these are the very cells of the plan.
    same_cells: bool,
}

/// The spread of differences in the run at `dir`.
pub(crate) fn earlier(dir: &Path, plan: &Plan) -> Result<Earlier, Failure> {
    let analysis = report::read(dir)?;
    let planned: Vec<&Cell> = plan.trials.iter().map(|trial| &trial.cell).collect();
    let (values, same_cells) = match rows(&analysis, &|cell| planned.contains(&cell)) {
        rows if rows.len() > 1 => (rows, true),
        _ => (rows(&analysis, &|_| true), false),
    };
    let spread = |measure: Measure| {
        let blocks = 1 + analysis.trials.iter().map(|trial| trial.block).max()?;
        let of_row = |row: &Row| -> Vec<Option<f64>> {
            (0..blocks)
                .map(|block| {
                    row.get(&block)
                        .and_then(|at| measure.of(&analysis.trials[*at]))
                })
                .collect()
        };
        paired_spread(&values.values().map(of_row).collect::<Vec<_>>())
    };
    Ok(Earlier {
        name: dir.display().to_string(),
        spreads: MEASURES.map(|measure| (measure, spread(measure))).into(),
        same_cells,
    })
}

/// Places of a cell's valid trials, by block.
type Row = BTreeMap<u32, usize>;

/// The rows of all cells that are wanted; a control is a row of its own.
fn rows(analysis: &Analysis, wanted: &dyn Fn(&Cell) -> bool) -> BTreeMap<(String, bool), Row> {
    let mut rows: BTreeMap<(String, bool), Row> = BTreeMap::new();
    for (at, trial) in analysis.trials.iter().enumerate() {
        if trial.verdict == Verdict::Valid && wanted(&trial.cell) {
            let row = rows.entry((trial.label.clone(), trial.control));
            row.or_default().insert(trial.block, at);
        }
    }
    rows
}

/// What the plan's blocks can show, at most 80 columns wide; empty where nothing is compared.
pub(crate) fn describe(study: &Study, plan: &Plan, earlier: Option<&Earlier>) -> String {
    let blocks = study.trials as usize;
    let compares = study.cells.len() > 1 || study.control;
    if plan.search.is_some() || plan.trials.is_empty() {
        return String::new();
    }
    let mut text = String::from("what it can show\n");
    if !compares {
        text.push_str("  one cell, so nothing is compared\n");
        return text;
    }
    let per_block = total(plan) / study.trials.max(1);
    text.push_str(&least(blocks, per_block));
    let relevant = study.smallest_difference;
    match earlier {
        Some(earlier) => text.push_str(&by_run(earlier, relevant, per_block, plan.seed)),
        None => text.push_str(&by_guess(relevant, plan.seed)),
    }
    let _ = writeln!(
        text,
        "  one block takes {}; differences within {} are called none; pairs\n  judged \
         together need more blocks than one alone",
        duration(per_block),
        percent(relevant),
    );
    text
}

/// Whether there are enough blocks for any verdict.
fn least(blocks: usize, per_block: Duration) -> String {
    let p = |blocks: usize| 2.0 * 0.5_f64.powi(i32::try_from(blocks).unwrap_or(i32::MAX));
    if blocks >= LEAST_BLOCKS {
        let p = p(blocks);
        let p = if p < 0.001 {
            "below 0.001".to_owned()
        } else {
            format!("{p:.3}")
        };
        return format!("  {blocks} blocks can reach p = {p} on a pair\n")
            .replace("= below", "below");
    }
    let least = LEAST_BLOCKS;
    let time = duration(per_block * u32::try_from(least).unwrap_or(u32::MAX));
    let can = if blocks == 1 {
        "block has"
    } else {
        "blocks have"
    };
    format!(
        "  {blocks} {can} ratios, and no verdict: {blocks} can't reach p < {ALPHA} on a pair; \
         {least} can,\n  in {time} (--set trials={least})\n"
    )
}

/// Blocks by measure, with the spread that a run had.
fn by_run(earlier: &Earlier, relevant: f64, per_block: Duration, seed: u64) -> String {
    let mut text = format!(
        "  by the spread of differences in {}{},\n  blocks for a difference to be shown in 4 of 5 \
         studies\n",
        earlier.name,
        if earlier.same_cells {
            ""
        } else {
            " (of other cells)"
        }
    );
    let heads = EFFECTS.map(|effect| format!("{:>16}", percent(effect)));
    let _ = writeln!(
        text,
        "    {:<20}{:>7}{}",
        "measure",
        "spread",
        heads.concat()
    );
    for (measure, spread) in &earlier.spreads {
        let Some(spread) = *spread else {
            let _ = writeln!(text, "    {:<20}{:>7}", measure.name(), "unknown");
            continue;
        };
        let cells = EFFECTS.map(|effect| {
            let sought = Sought {
                effect,
                relevant,
                spread,
            };
            let words = match needed_blocks(&sought, USUAL_POWER, seed) {
                Some(blocks) => {
                    let time = per_block * u32::try_from(blocks).unwrap_or(u32::MAX);
                    format!("{blocks} ({})", duration(time))
                }
                None => never(effect, relevant),
            };
            format!("{words:>16}")
        });
        let _ = writeln!(
            text,
            "    {:<20}{:>7}{}",
            measure.name(),
            percent(spread),
            cells.concat()
        );
    }
    if earlier.spreads.iter().all(|(_, spread)| spread.is_none()) {
        text.push_str("    a spread needs two cells in two blocks or more, all valid\n");
    }
    text
}

/// Blocks by spreads that a run might have.
fn by_guess(relevant: f64, seed: u64) -> String {
    let mut text = String::from(
        "  blocks for a difference to be shown in 4 of 5 studies, by how far the ratio\n  of two \
         cells spreads from block to block (a run tells: --from RUN)\n",
    );
    let heads = SPREADS.map(|spread| format!("{:>14}", format!("spread {}", percent(spread))));
    let _ = writeln!(text, "    {:<12}{}", "difference", heads.concat());
    for effect in EFFECTS {
        let cells = SPREADS.map(|spread| {
            let sought = Sought {
                effect,
                relevant,
                spread,
            };
            let needed = needed_blocks(&sought, USUAL_POWER, seed);
            let words = needed.map_or_else(|| never(effect, relevant), |blocks| blocks.to_string());
            format!("{words:>14}")
        });
        let _ = writeln!(text, "    {:<12}{}", percent(effect), cells.concat());
    }
    text
}

fn never(effect: f64, relevant: f64) -> String {
    match effect <= relevant {
        true => "-".to_owned(),
        false => format!("> {MOST_BLOCKS}"),
    }
}

/// `5 %`, `2.3 %`, `0.04 %`.
fn percent(part: f64) -> String {
    let percent = part * 100.0;
    let digits = match percent {
        p if p >= 9.95 || (p - p.round()).abs() < 1e-6 => 0,
        p if p >= 0.095 => 1,
        _ => 2,
    };
    format!("{percent:.digits$} %")
}

#[cfg(test)]
mod tests {
    use lab_analysis::model::Measure;
    use lab_study::plan::{PlanOptions, plan};
    use lab_study::{Files, load_study};

    use super::{Earlier, describe};

    struct Folder(String);

    impl Files for Folder {
        fn read(&self, path: &str) -> Result<Vec<u8>, std::io::Error> {
            Ok(match path.ends_with(".study.yaml") {
                true => self.0.clone().into_bytes(),
                false => {
                    b"workload: w\nsession: { pace: 10s, steps: [{ step: s, request: GET / }] }\n"
                        .to_vec()
                }
            })
        }
    }

    fn shown(extra: &str, earlier: Option<&Earlier>) -> String {
        let study = format!(
            "study: s\ntitle: S\nworkload: w\nsystem: {{ groupware: {{}} }}\n\
             load: {{ users: 100, ramp: 10s, hold: 50s }}\n{extra}"
        );
        let study = load_study("s.study.yaml", &Folder(study), &[])
            .unwrap()
            .study;
        let plan = plan(&study, &PlanOptions::default()).unwrap();
        let text = describe(&study, &plan, earlier);
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        text
    }

    #[test]
    fn what_few_blocks_can_show() {
        insta::assert_snapshot!(shown("matrix: { n: [1, 2] }\ntrials: 5\n", None));
    }

    #[test]
    fn what_enough_blocks_can_show_by_an_earlier_run() {
        let earlier = Earlier {
            name: "runs/s-20261121-120000".to_owned(),
            spreads: vec![
                (Measure::Mean, Some(0.05)),
                (Measure::Throughput, Some(0.0004)),
                (Measure::P95, Some(0.31)),
                (Measure::Cpu, None),
            ],
            same_cells: false,
        };
        let extra = "matrix: { n: [1, 2] }\ntrials: 8\nsmallest_difference: 1%\n";
        insta::assert_snapshot!(shown(extra, Some(&earlier)));
    }

    #[test]
    fn one_cell_compares_nothing() {
        assert_eq!(
            shown("trials: 8\n", None),
            "what it can show\n  one cell, so nothing is compared\n"
        );
    }
}
