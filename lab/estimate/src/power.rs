//! What a study can and can't show, in words: whether its blocks can reach a verdict, and how many a
//! difference needs.

use std::fmt::Write;
use std::time::Duration;

use lab_analysis::Analysis;
use lab_analysis::power::{
    Design, EFFECTS, Needed, NeededBlocks, OfMeasure, Power, Reach, SPREADS, Spreads, family,
};
use lab_comparison::TwoRuns;
use lab_study::Study;
use lab_study::model::Cell;
use lab_study::plan::Plan;

use crate::length::Lengths;
use crate::profile;
use crate::words::{WIDTH, duration};

/// The text about duets.
const DUET: &str = "  two trials at a time on the same cores, compared moment by moment; figures\n  \
                    are those of half a machine\n";
const APART: &str = "  two trials at a time, each with its generator on half of the cores, compared\n  \
                     moment by moment; figures are those of half a machine\n";

/// The spread of differences in an earlier run.
#[derive(Debug)]
pub struct Earlier {
    /// The run's name, as the sentences show it.
    name: String,
    spreads: Spreads,
}

impl Earlier {
    /// The spread of differences in a run, for the comparisons of a plan.
    #[must_use]
    pub fn of(name: String, analysis: &Analysis, plan: &Plan) -> Self {
        let planned: Vec<&Cell> = plan.trials.iter().map(|trial| &trial.cell).collect();
        Self {
            name,
            spreads: Spreads::of(analysis, &planned, plan.question.decides),
        }
    }
}

/// The power of the plan's blocks, at most 80 columns wide; empty for a search.
#[must_use]
pub fn power(study: &Study, plan: &Plan, earlier: Option<&Earlier>) -> String {
    let compares = study.cells.len() > 1 || study.control;
    if plan.search.is_some() || plan.trials.is_empty() {
        return String::new();
    }
    let mut text = String::from("what it can show\n");
    if !compares {
        text.push_str("  one cell, so nothing is compared\n");
        return text;
    }
    let per_block = Lengths::of(study).total(plan) / study.trials.max(1);
    let design = design(study, plan);
    let power = Power::of(&design, earlier.map(|earlier| &earlier.spreads));
    if study.duet {
        text.push_str(if study.apart { APART } else { DUET });
    }
    text.push_str(&reach(power.reach, design.blocks, per_block));
    if let Some(measure) = study.decides {
        let _ = writeln!(
            text,
            "  decided by {} alone; all else is exploratory",
            measure.name()
        );
    }
    match (&power.needed, earlier) {
        (NeededBlocks::ByRun(rows), Some(earlier)) => {
            text.push_str(&by_run(earlier, rows, per_block));
        }
        (NeededBlocks::ByGuess(columns), _) => text.push_str(&by_guess(columns)),
        // Without an earlier run there is no estimate by its spread.
        (NeededBlocks::ByRun(_), None) => {}
    }
    text.push_str(&shown(&power, design.blocks));
    if study.duet {
        text.push_str(&unchanged(&design, earlier, per_block));
    }
    text.push_str(&profiles(plan, design.blocks));
    let _ = writeln!(
        text,
        "  one block takes {}; differences within {} are called none;\n  {}",
        duration(per_block),
        percent(design.relevant),
        together(design.family.len()),
    );
    text
}

/// The power of the profiles, over the shortest hold; empty without them.
fn profiles(plan: &Plan, blocks: usize) -> String {
    let holds = plan.trials.iter().map(|trial| trial.load.hold_ms);
    let hold = Duration::from_millis(holds.min().unwrap_or_default());
    let profile = plan.question.profile.as_ref();
    profile.map_or_else(String::new, |of| {
        profile::profile(of, hold, blocks, plan.question.smallest_difference)
    })
}

fn design(study: &Study, plan: &Plan) -> Design {
    Design {
        blocks: study.trials as usize,
        relevant: study.smallest_difference,
        seed: plan.seed,
        family: family(&plan.question, &|cell| users_of(plan, cell)),
        decides: study.decides,
        duet: study.duet,
    }
}

/// The power of a comparison of two runs of the plan, by earlier ones; empty for a search.
#[must_use]
pub fn between_runs(study: &Study, plan: &Plan, earlier: &[Analysis]) -> String {
    if plan.search.is_some() || plan.trials.is_empty() {
        return String::new();
    }
    let design = design(study, plan);
    let runs = match TwoRuns::of(&design, study.cells.len(), earlier) {
        Ok(runs) => runs,
        Err(least) => {
            return format!(
                "  two runs of it have no verdict beside each other: {least} blocks in each are the\n  \
                 fewest that can (--set trials={least})\n"
            );
        }
    };
    let blocks = percent(runs.spread.of_blocks);
    let count = match runs.runs {
        1 => "1 earlier run".to_owned(),
        n => format!("{n} earlier runs"),
    };
    let by = match (runs.spread.of_runs, &runs.told) {
        (Some(of_runs), Some((measure, _))) => format!(
            "{}, by {count}: runs spread {}, blocks {blocks}",
            measure.name(),
            percent(of_runs)
        ),
        (None, Some((measure, _))) => format!(
            "{}, by {count}: blocks spread {blocks}; four tell of runs,\n    so they are assumed to spread as \
             far",
            measure.name()
        ),
        (_, None) => {
            format!("no earlier run tells: blocks are assumed to spread {blocks}, and runs as far")
        }
    };
    let parts = EFFECTS.into_iter().zip(runs.parts);
    let parts: Vec<String> = parts
        .map(|(effect, part)| format!("{} in {:.0}", percent(effect), part * 100.0))
        .collect();
    format!(
        "  in how many of 100 comparisons two such runs show a difference\n    ({by}):\n    {}\n",
        parts.join(", ")
    )
}

/// Blocks needed to show that an unchanged build is not worse, alone and with others.
fn unchanged(design: &Design, earlier: Option<&Earlier>, per_block: Duration) -> String {
    let known = earlier.and_then(|earlier| earlier.spreads.of_duet);
    let spread = known.unwrap_or(SPREADS[1]);
    let blocks = |stretch: f64| {
        let needed = design.unchanged(spread * stretch);
        match needed {
            Needed::Blocks(blocks) => {
                let time = per_block * u32::try_from(blocks).unwrap_or(u32::MAX);
                format!("{blocks} ({})", duration(time))
            }
            Needed::MoreThan(_) | Needed::Irrelevant => number(needed),
        }
    };
    format!(
        "  blocks for an unchanged build to be shown not worse by {} in 4 of 5 studies,\n    where the mean \
         response of two spreads {}: {};\n    beside others that double response times: {}\n",
        percent(design.relevant),
        percent(spread),
        blocks(1.0),
        blocks(2.0)
    )
}

/// The number of users of a cell.
fn users_of(plan: &Plan, cell: &Cell) -> Option<u32> {
    let mut trials = plan.trials.iter();
    trials
        .find(|trial| trial.cell == *cell)
        .map(|trial| trial.load.users)
}

/// The power of the study's own blocks.
fn shown(power: &Power, blocks: usize) -> String {
    let Some(shown) = &power.shown else {
        return String::new();
    };
    let parts = EFFECTS.into_iter().zip(shown.parts);
    let parts: Vec<String> = parts
        .map(|(effect, part)| format!("{} in {:.0}", percent(effect), part * 100.0))
        .collect();
    let of = match shown.measure {
        Some(measure) => format!("{}, ", measure.name()),
        None => String::new(),
    };
    format!(
        "  in how many of 100 studies {blocks} blocks show a difference\n    ({of}spread {}): {}\n",
        percent(shown.spread),
        parts.join(", ")
    )
}

/// The number of comparisons that are judged together, in words.
fn together(family: usize) -> String {
    match family {
        0 | 1 => "one comparison decides".to_owned(),
        n => format!("{n} comparisons decide together, and each costs the others power"),
    }
}

/// Whether there are enough blocks for any verdict.
fn reach(reach: Reach, blocks: usize, per_block: Duration) -> String {
    let (least, alpha) = match reach {
        Reach::Verdict { p } if p < 0.001 => {
            return format!("  {blocks} blocks can reach p below 0.001 on a pair\n");
        }
        Reach::Verdict { p } => {
            return format!("  {blocks} blocks can reach p = {p:.3} on a pair\n");
        }
        Reach::NoVerdict {
            least_blocks,
            alpha,
        } => (least_blocks, alpha),
    };
    let time = duration(per_block * u32::try_from(least).unwrap_or(u32::MAX));
    let can = if blocks == 1 {
        "block has"
    } else {
        "blocks have"
    };
    format!(
        "  {blocks} {can} ratios, and no verdict: {blocks} can't reach p < {alpha} on a pair; \
         {least} can,\n  in {time} (--set trials={least})\n"
    )
}

/// The words of a measure's line.
fn of_measure(row: &OfMeasure, per_block: Duration) -> Vec<String> {
    let name = match row.decides {
        true => row.measure.name().to_owned(),
        false => format!("{} *", row.measure.name()),
    };
    let Some((spread, needed)) = row.found else {
        return vec![name, "unknown".to_owned()];
    };
    let blocks = needed.map(|needed| {
        let mut words = number(needed);
        if let Needed::Blocks(blocks) = needed {
            let time = per_block * u32::try_from(blocks).unwrap_or(u32::MAX);
            words.push_str(&format!(" ({})", duration(time)));
        }
        words
    });
    [name, percent(spread)].into_iter().chain(blocks).collect()
}

/// Lines with aligned columns, the first to the left, the others to the right.
fn columns(lines: &[Vec<String>]) -> String {
    let count = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width = |at: usize| {
        let cells = lines.iter().filter_map(|line| line.get(at));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..count).map(width).collect();
    let whole = 2 + widths.iter().map(|width| width + 2).sum::<usize>();
    let gap = if whole - 2 > WIDTH { " " } else { "  " };
    let mut text = String::new();
    for line in lines {
        text.push(' ');
        for (at, (cell, width)) in line.iter().zip(&widths).enumerate() {
            let _ = match at {
                0 => write!(text, " {cell:<width$}"),
                _ => write!(text, "{gap}{cell:>width$}"),
            };
        }
        text.push('\n');
    }
    text
}

/// Blocks by measure, with the spread of a run.
fn by_run(earlier: &Earlier, rows: &[OfMeasure], per_block: Duration) -> String {
    let mut text = format!(
        "  by the spread of differences in {}{},\n  blocks for a difference to be shown in 4 of 5 \
         studies\n",
        earlier.name,
        if earlier.spreads.same_cells {
            ""
        } else {
            " (of other cells)"
        }
    );
    let heads = ["measure".to_owned(), "spread".to_owned()];
    let mut lines = vec![heads.into_iter().chain(EFFECTS.map(percent)).collect()];
    lines.extend(rows.iter().map(|row| of_measure(row, per_block)));
    text.push_str(&columns(&lines));
    if rows.iter().any(|row| !row.decides) {
        text.push_str("  * decides nothing: of one comparison alone\n");
    }
    if rows.iter().all(|row| row.found.is_none()) {
        text.push_str("    a spread needs two cells in two blocks or more, all valid\n");
    }
    text
}

/// Blocks for typical spreads of a run.
fn by_guess(columns: &[[Needed; EFFECTS.len()]]) -> String {
    let mut text = String::from(
        "  blocks for a difference to be shown in 4 of 5 studies, by how far the ratio\n  of two \
         cells spreads from block to block (a run tells: --from RUN)\n",
    );
    let heads = SPREADS.map(|spread| format!("{:>14}", format!("spread {}", percent(spread))));
    let _ = writeln!(text, "    {:<12}{}", "difference", heads.concat());
    for (row, effect) in EFFECTS.into_iter().enumerate() {
        let cells = columns
            .iter()
            .map(|needed| format!("{:>14}", number(needed[row])));
        let cells: String = cells.collect();
        let _ = writeln!(text, "    {:<12}{cells}", percent(effect));
    }
    text
}

fn number(needed: Needed) -> String {
    match needed {
        Needed::Blocks(blocks) => blocks.to_string(),
        Needed::MoreThan(most) => format!("> {most}"),
        Needed::Irrelevant => "-".to_owned(),
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
    use lab_analysis::power::Spreads;
    use lab_study::load_study;
    use lab_study::plan::{PlanOptions, plan};

    use super::{Earlier, power};
    use crate::folder::Folder;

    fn shown(extra: &str, earlier: Option<&Earlier>) -> String {
        let timeout = match extra.contains("matrix") {
            true => ", timeout: \"{{ n }}m\"",
            false => "",
        };
        let study = format!(
            "study: s\ntitle: S\nworkload: w\n\
             load: {{ users: 100, ramp: 10s, hold: 50s{timeout} }}\n{extra}"
        );
        let study = match extra.contains("variants") {
            true => study,
            false => format!("{study}system: {{ groupware: {{}} }}\n"),
        };
        let study = load_study(
            "s.study.yaml",
            &Folder {
                study,
                pace: "pace: 10s, ",
            },
            &[],
        )
        .unwrap()
        .study;
        let plan = plan(&study, &PlanOptions::default()).unwrap();
        let text = power(&study, &plan, earlier);
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
            spreads: Spreads {
                by_measure: vec![
                    (Measure::Mean, Some(0.05)),
                    (Measure::Throughput, Some(0.0004)),
                    (Measure::P95, Some(0.31)),
                    (Measure::Cpu, None),
                ],
                of_duet: None,
                same_cells: false,
            },
        };
        let extra = "matrix: { n: [1, 2] }\ntrials: 8\nsmallest_difference: 1%\n";
        insta::assert_snapshot!(shown(extra, Some(&earlier)));
    }

    #[test]
    fn what_duets_can_show() {
        let variants = "variants: { a: { groupware: {} }, b: { groupware: {} } }\nduet: true\n";
        let shown = |trials: u32| shown(&format!("{variants}trials: {trials}\n"), None);
        insta::assert_snapshot!(format!("{}\n{}", shown(6), shown(8)));
    }

    #[test]
    fn profiles_add_what_functions_they_show() {
        let of = |profile| {
            shown(
                &format!("matrix: {{ n: [1, 2] }}\ntrials: 8\n{profile}"),
                None,
            )
        };
        assert!(of("profile: true\n").contains("by profiles at 199 samples/s"));
        assert!(of("profile: { rate: 997 }\n").contains("by profiles at 997 samples/s"));
        assert!(!of("").contains("profiles"));
    }

    #[test]
    fn one_cell_compares_nothing() {
        assert_eq!(
            shown("trials: 8\n", None),
            "what it can show\n  one cell, so nothing is compared\n"
        );
    }
}
