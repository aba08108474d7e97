//! Reports on invalid trials: their reasons, first of all; then, separate from all figures, their counts, and hints for
//! further study. CPU demand has a verdict of its own.

use lab_plan::checks::CheckId;

use super::comparisons::{Pair, pairs, table};
use super::figures::whole;
use super::words::which;
use crate::Analysis;
use crate::document::{Block, Cell, Column, Group, Heading, Kind, Role, Row, Section, Table};
use crate::format::{NONE, figure, list, plural, ratio};
use crate::model::{CheckOutcome, Exploratory, Range, Reason, Seen, Times, TrialAnalysis, Verdict};

/// The maximum number of reasons; more are counted.
const MOST_REASONS: usize = 6;
/// The maximum number of lines of a system's output.
const MOST_LINES: usize = 12;
/// The maximum number of cells; more are counted.
const MOST_CELLS: usize = 16;
/// The maximum number of rows in a terminal; a page has all.
const MOST_TOLD: usize = 12;
/// Rows of steps with a larger p are only on pages.
const TELLING: f64 = 0.05;

/// Why trials are invalid: a line per reason, the last output of the system, and the remedies.
pub(super) fn lead(analysis: &Analysis) -> Option<Section> {
    if analysis.summary.invalid == 0 {
        return None;
    }
    let mut blocks: Vec<Block> = last_words(analysis).into_iter().collect();
    let invalid: Vec<&Reason> = analysis
        .reasons
        .iter()
        .filter(|one| one.outcome == CheckOutcome::Invalid)
        .collect();
    let mut lines = reasons(&invalid, MOST_REASONS, analysis);
    lines.extend(way_on(analysis.summary.disturbed));
    blocks.push(Block::List(lines));
    Some(Section {
        role: Role::Lead,
        ..Section::new("Why", blocks)
    })
}

/// The next steps after a run without a result.
fn way_on(disturbed: usize) -> Option<String> {
    let trials = plural(disturbed, "trial");
    let was = if disturbed == 1 { "was" } else { "were" };
    (disturbed > 0).then(|| {
        format!(
            "{trials} {was} disturbed from outside. → The command of this run with --resume repeats what \
             was disturbed, and keeps the rest."
        )
    })
}

/// Reasons, a line each, up to `most`; the rest is counted.
pub(super) fn reasons(reasons: &[&Reason], most: usize, analysis: &Analysis) -> Vec<String> {
    let shown = reasons.iter().take(most);
    let mut lines: Vec<String> = shown.map(|one| reason(one, analysis)).collect();
    let more = reasons.len().saturating_sub(most);
    lines.extend((more > 0).then(|| {
        format!(
            "{} failed, too: see the checks of each trial",
            plural(more, "further check")
        )
    }));
    lines
}

/// A reason with its count, its figure, its culprits, and the remedy: `12 × other programs: …`.
fn reason(reason: &Reason, analysis: &Analysis) -> String {
    let culprits = match reason.culprits.as_slice() {
        [] => String::new(),
        some if reason.trials.len() > 1 => format!(": {}", list(some)),
        _ => String::new(),
    };
    let warns = match reason.outcome {
        CheckOutcome::Warn => ", warning",
        _ => "",
    };
    let evidence = match reason.check {
        // The headline has the kind of failure.
        CheckId::SystemUnderTest | CheckId::Preparation => String::new(),
        _ => format!(": {}{culprits}", reason.evidence.trim_end_matches('.')),
    };
    let (n, all) = (reason.trials.len(), analysis.trials.len());
    let of = match n {
        1 if all > 1 => format!("{}: ", which(&reason.trials)),
        1 => String::new(),
        n => format!("{n} × "),
    };
    let which = match n {
        1 => String::new(),
        n if n == all => String::new(),
        _ => format!(" ({})", which(&reason.trials)),
    };
    format!(
        "{of}{}{warns}{which}{evidence}. → {}",
        reason.check.title(),
        reason.advice
    )
}

/// The last output of the first system that failed.
fn last_words(analysis: &Analysis) -> Option<Block> {
    let failed = analysis.trials.iter();
    let message = |trial: &TrialAnalysis| {
        let failure = trial.system_failure.as_ref();
        failure.or(trial.preparation_failure.as_ref()).cloned()
    };
    let failed = failed.filter_map(|trial| Some((trial.id, message(trial)?)));
    let (id, message) = failed.min_by_key(|(id, _)| *id)?;
    let lines: Vec<String> = message.lines().skip(1).map(str::to_owned).collect();
    let from = lines.len().saturating_sub(MOST_LINES);
    let who = format!("What it printed last in trial {id}:");
    (!lines.is_empty()).then(|| Block::Printed(who, lines[from..].to_vec()))
}

fn range(range: Range, show: fn(f64) -> String) -> String {
    let (least, most) = (show(range.least), show(range.most));
    if least == most {
        return least;
    }
    format!("{least} to {most}")
}

/// Counts of invalid trials, and the cost of a transaction in them; before the figures if a cell has nothing else.
pub(super) fn seen(analysis: &Analysis) -> Option<Section> {
    let shown: Vec<&Seen> = analysis.seen.iter().filter(|seen| seen.is_all).collect();
    let shown = match shown.is_empty() {
        true => analysis.seen.iter().collect(),
        false => shown,
    };
    if shown.is_empty() {
        return None;
    }
    let columns = [
        ("cell", Kind::Text),
        ("trials", Kind::Number),
        ("transactions", Kind::Number),
        ("errors", Kind::Number),
        ("mean ms", Kind::Number),
        ("p95 ms", Kind::Number),
        ("CPU ms/tx", Kind::Number),
        ("disk KB/tx", Kind::Number),
    ];
    let has_disk = |seen: &&Seen| seen.disk_kb_per_transaction.is_some();
    let width = columns.len() - usize::from(!shown.iter().any(has_disk));
    let rows = shown.iter().take(MOST_CELLS).map(|seen| {
        let or_none =
            |of: Option<Range>| of.map_or_else(|| NONE.to_owned(), |of| range(of, figure));
        let cells = [
            seen.label.clone(),
            seen.trials.to_string(),
            range(seen.transactions, whole),
            range(seen.errors, whole),
            or_none(seen.mean_response_ms),
            or_none(seen.p95_response_ms),
            or_none(seen.cpu_ms_per_transaction),
            or_none(seen.disk_kb_per_transaction),
        ];
        Row::new(cells.into_iter().take(width).map(Cell::text).collect())
    });
    let columns = columns.into_iter().take(width);
    let columns = columns
        .map(|(head, kind)| Column::new(head, kind))
        .collect();
    let table = Table::new("Seen, not measured", "cell", columns, rows.collect());
    let more = match shown.len().saturating_sub(MOST_CELLS) {
        0 => String::new(),
        n => format!(" {} more are in result.json.", plural(n, "cell")),
    };
    let lead =
        format!("Counted in invalid trials, least to most; neither compared nor judged.{more}");
    let mut blocks = vec![Block::Paragraph(lead), Block::Table(table)];
    blocks.extend(times_seen(analysis, &shown).map(Block::Table));
    Some(Section {
        role: Role::Apart("seen, not measured"),
        ..Section::new("Seen, not measured", blocks)
    })
}

/// Response times by step in invalid trials: a hint, as for a disturbed `bench`.
fn times_seen(analysis: &Analysis, shown: &[&Seen]) -> Option<Table> {
    let columns = [
        ("cell", Kind::Text),
        ("step", Kind::Text),
        ("answers", Kind::Number),
        ("mean, ms", Kind::Number),
        ("p50, ms", Kind::Number),
        ("p95, ms", Kind::Number),
        ("p99, ms", Kind::Number),
    ];
    let mut rows = Vec::new();
    for seen in shown.iter().take(MOST_CELLS) {
        let invalid = analysis
            .trials
            .iter()
            .filter(|trial| trial.label == seen.label && trial.verdict == Verdict::Invalid);
        let invalid: Vec<&TrialAnalysis> = invalid.collect();
        for (at, step) in analysis.study.steps.iter().enumerate() {
            let times = invalid.iter().filter_map(|trial| trial.steps.get(at));
            let times: Vec<Times> = times.map(|step| step.response_ms).collect();
            let of = |value: fn(&Times) -> Option<f64>, show: fn(f64) -> String| {
                let found = Range::of(times.iter().filter_map(value));
                found.map_or_else(|| NONE.to_owned(), |found| range(found, show))
            };
            if times.iter().all(|times| times.count == 0) {
                continue;
            }
            let cells = [
                seen.label.clone(),
                step.clone(),
                of(
                    |times| u32::try_from(times.count).ok().map(f64::from),
                    whole,
                ),
                of(|times| times.mean, figure),
                of(|times| times.p50, figure),
                of(|times| times.p95, figure),
                of(|times| times.p99, figure),
            ];
            rows.push(Row::new(cells.into_iter().map(Cell::text).collect()));
        }
    }
    let columns = columns.map(|(head, kind)| Column::new(head, kind)).to_vec();
    let name = "Response times seen, least to most: a hint, not a measurement";
    (!rows.is_empty()).then(|| Table::new(name, "step", columns, rows))
}

/// The verdict on CPU per transaction if only times were disturbed.
pub(super) fn demand(analysis: &Analysis) -> Option<Section> {
    let demand = analysis.demand.as_ref()?;
    let mut lead = "Where nothing but wall-clock times was spoiled, what a transaction cost the system \
                    in CPU is compared all the same, by the same test. This says nothing of response \
                    times or throughput, and no gate reads it."
        .to_owned();
    for why in &demand.not_compared {
        lead.push_str(&format!(" Not compared: {why}."));
    }
    let pairs: Vec<Pair<'_>> = pairs(&demand.comparisons);
    let mut blocks = vec![Block::Paragraph(lead)];
    if !pairs.is_empty() {
        blocks.push(Block::Table(table("b beside a", &pairs, None)));
    }
    Some(Section::new("CPU demand alone", blocks))
}

/// Blocks that are complete but invalid: how often one side was lower.
pub(super) fn exploratory(analysis: &Analysis) -> Option<Section> {
    let rows = &analysis.exploratory;
    if rows.is_empty() {
        return None;
    }
    let columns = [
        ("measure", Kind::Text),
        ("b is lower in", Kind::Number),
        ("ratio b ÷ a", Kind::Number),
        ("sign test p", Kind::Number),
    ];
    let mut left = MOST_TOLD;
    let groups = rows.chunk_by(|one, next| (&one.a, &one.b) == (&next.a, &next.b));
    let groups = groups.map(|group| Group {
        name: format!("{} → {}", group[0].a, group[0].b),
        heading: Heading::Name,
        rows: group
            .iter()
            .map(|one| {
                let is_told = (one.step.is_none() || one.sign_p <= TELLING) && left > 0;
                left -= usize::from(is_told);
                looked_at(one, is_told)
            })
            .collect(),
    });
    let table = Table {
        name: "Exploratory",
        row: "row",
        group: "b beside a",
        sorts: false,
        columns: columns.map(|(head, kind)| Column::new(head, kind)).to_vec(),
        groups: groups.collect(),
    };
    let lead = "Blocks whose trials are not all measurements, side by side. Each row stands alone (p: \
                sign test), no threshold and no gate reads it, and what disturbed the trials may have \
                chosen sides. It says where a quiet run is worth its time.";
    let blocks = vec![Block::Paragraph(lead.to_owned()), Block::Table(table)];
    Some(Section {
        role: Role::Apart("exploratory"),
        ..Section::new("Exploratory, not a result", blocks)
    })
}

fn looked_at(one: &Exploratory, is_told: bool) -> Row {
    let name = match &one.step {
        Some(step) => format!("mean response of “{step}”"),
        None => one.metric.name().to_owned(),
    };
    let lower = format!("{} of {} blocks", one.lower, one.blocks);
    let (least, most) = (ratio(one.ratio.least), ratio(one.ratio.most));
    let p = if one.sign_p < 0.000_1 {
        "< 0.0001".to_owned()
    } else {
        figure(one.sign_p)
    };
    let sentence = format!("{name}: lower in {lower}, {least} to {most} (p {p})");
    let cells = [name, lower, format!("{least} to {most}"), p];
    Row {
        sentence: is_told.then_some(sentence),
        ..Row::new(cells.into_iter().map(Cell::text).collect())
    }
}
