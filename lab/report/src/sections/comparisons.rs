//! Comparisons: their texts and their order.

use crate::Analysis;
use crate::chart::{Chart, Interval, Intervals, Mark};
use crate::document::{
    Block, Card, Cell, Charts, Column, Content, Group, Heading, Kind, Row, Section, Table, Tone,
};
use crate::format::{NONE, figure, plural, times};
use crate::model::{Answer, Comparison, Difference};
use lab_analysis::answer::verdict_words;

/// The maximum number of pairs with a chart; the table has all.
const MOST_CHARTS: usize = 12;

/// The texts of one comparison.
pub(crate) struct Texts {
    /// `mean response, ms`.
    pub(crate) measure: String,
    pub(crate) a: String,
    pub(crate) b: String,
    /// With its sign.
    pub(crate) difference: String,
    /// `+12.5 %`, or `×3.60`.
    pub(crate) relative: String,
    /// `+10.1 % to +14.9 %`.
    pub(crate) interval: String,
    pub(crate) p: String,
    pub(crate) verdict: String,
}

pub(crate) fn texts(one: &Comparison) -> Texts {
    let sign = if one.difference > 0.0 { "+" } else { "" };
    Texts {
        measure: format!("{}, {}", one.metric.name(), one.metric.unit()),
        a: figure(one.mean_a),
        b: figure(one.mean_b),
        difference: format!("{sign}{}", figure(one.difference)),
        relative: one.metric.change(one.ratio),
        interval: one.interval.map_or_else(
            || NONE.to_owned(),
            |(low, high)| {
                let (low, high) = (one.metric.change(low), one.metric.change(high));
                if low == high {
                    low
                } else {
                    format!("{low} to {high}")
                }
            },
        ),
        p: one.p.map_or_else(|| NONE.to_owned(), |p| format!("{p:.3}")),
        verdict: verdict_words(one),
    }
}

/// The notes on the control.
fn control_lead(analysis: &Analysis) -> String {
    let text = "The same system under two labels in every block. What seems to differ here is \
                noise, and no smaller difference is called one in the comparisons";
    let bounded = !analysis.inference.claims.is_empty();
    if bounded {
        format!("{text}.")
    } else {
        format!("{text}; these blocks are too few to bound it.")
    }
}

/// The control, then comparisons: intervals where there are any, then the verdicts; then main effects.
pub(super) fn comparisons(analysis: &Analysis) -> Vec<Section> {
    let mut sections = Vec::new();
    let mut part = |title: &str, lead: String, comparisons: &[Comparison]| {
        let pairs = pairs(comparisons);
        let answer = analysis.answer.as_ref();
        let relevant = analysis.inference.smallest_relevant;
        let mut blocks = vec![Block::Paragraph(lead)];
        blocks.extend(intervals(&pairs, relevant, MOST_CHARTS).map(Block::Charts));
        blocks.push(Block::Table(table("b beside a", &pairs, answer)));
        sections.push(Section::new(title, blocks));
    };
    if !analysis.control.is_empty() {
        part("Control", control_lead(analysis), &analysis.control);
    }
    if !analysis.comparisons.is_empty() {
        part("Comparisons", lead(analysis), &analysis.comparisons);
    }
    if !analysis.main_effects.is_empty() && analysis.inference.judged > 0 {
        let lead = "Levels of a factor over all combinations of the others.".to_owned();
        part("Over all cells", lead, &analysis.main_effects);
    }
    sections
}

/// Comparisons of one group: of a pair of cells, or of one cell in two runs.
pub(super) struct Pair<'a> {
    pub(super) title: String,
    /// The number of their blocks or trials.
    pub(super) over: String,
    pub(super) comparisons: &'a [Comparison],
}

/// Groups neighbouring comparisons of the same pair.
pub(super) fn pairs(comparisons: &[Comparison]) -> Vec<Pair<'_>> {
    comparisons
        .chunk_by(|one, next| (&one.a, &one.b) == (&next.a, &next.b))
        .map(|group| {
            let blocks = group.iter().map(|one| one.blocks).max().unwrap_or_default();
            Pair {
                title: format!("{} → {}", group[0].a, group[0].b),
                over: plural(blocks, "block"),
                comparisons: group,
            }
        })
        .collect()
}

/// A chart of intervals per pair that has any, up to `most`; the table has all.
pub(super) fn intervals(pairs: &[Pair<'_>], relevant: f64, most: usize) -> Option<Charts> {
    let bounded = |pair: &&Pair<'_>| pair.comparisons.iter().any(|one| one.interval.is_some());
    let card = |pair: &Pair<'_>| {
        let rows: Vec<Interval> = pair.comparisons.iter().map(interval).collect();
        let name = format!("Ratios with intervals, {}", pair.title);
        let chart = Intervals::new(name, &rows, relevant)?;
        Some(Card {
            title: pair.title.clone(),
            unit: pair.over.clone(),
            badge: None,
            content: Content::Chart(Some(Chart::Intervals(chart)), ""),
        })
    };
    let cards = pairs.iter().filter(bounded).take(most).filter_map(card);
    let cards: Vec<Card> = cards.collect();
    let key = [
        (Mark::Interval, "ratio and its interval"),
        (Mark::Shown, "a difference is shown"),
        (Mark::Band, "too small to matter"),
    ];
    (!cards.is_empty()).then(|| Charts {
        lead: String::new(),
        key: key.map(|(mark, words)| (mark, words.to_owned())).to_vec(),
        cards,
    })
}

fn interval(one: &Comparison) -> Interval {
    Interval {
        name: one.metric.name(),
        ratio: one.ratio,
        interval: one.interval,
        is_shown: one.is_shown(),
    }
}

/// Every comparison, those of a pair together. If the study names the deciding measure, its rows are marked.
pub(super) fn table(of: &'static str, pairs: &[Pair<'_>], answer: Option<&Answer>) -> Table {
    let columns = [
        ("measure", Kind::Text),
        ("a", Kind::Number),
        ("b", Kind::Number),
        ("difference", Kind::Number),
        ("relative", Kind::Number),
        ("interval", Kind::Number),
        ("p", Kind::Number),
        ("verdict", Kind::Text),
    ];
    let named = answer.is_some_and(|answer| answer.named);
    let groups = pairs.iter().map(|pair| Group {
        name: format!("{} ({})", pair.title, pair.over),
        heading: Heading::Name,
        rows: pair.comparisons.iter().map(|one| row(one, named)).collect(),
    });
    Table {
        name: "Comparisons",
        row: "comparison",
        group: of,
        sorts: false,
        columns: columns.map(|(head, kind)| Column::new(head, kind)).to_vec(),
        groups: groups.collect(),
    }
}

fn row(one: &Comparison, named: bool) -> Row {
    let mut shown = texts(one);
    if named && one.decides {
        shown.measure.push_str(" (decides)");
    }
    let interval = one.interval;
    let interval = interval.map_or_else(String::new, |_| format!(", {}", shown.interval));
    let sentence = format!(
        "{}: {}; {} → {} ({}), {}{interval}",
        shown.measure, shown.verdict, shown.a, shown.b, shown.difference, shown.relative,
    );
    let tone = match one.verdict {
        Some(verdict) if verdict.is_better() => Tone::Good,
        Some(verdict) if verdict.is_worse() => Tone::Bad,
        Some(Difference::CouldNotTell) => Tone::Warn,
        _ => Tone::Plain,
    };
    let figures = [
        shown.measure,
        shown.a,
        shown.b,
        shown.difference,
        shown.relative,
        shown.interval,
        shown.p,
    ];
    let verdict = Cell {
        tone,
        ..Cell::text(shown.verdict)
    };
    Row {
        struck: false,
        muted: false,
        cells: figures
            .into_iter()
            .map(Cell::text)
            .chain([verdict])
            .collect(),
        sentence: Some(sentence),
    }
}

/// Which of the comparisons that are `judged` decide, and the role of the others.
pub(super) fn families(answer: Option<&Answer>, deciding: usize, judged: usize) -> String {
    let others = judged.saturating_sub(deciding);
    let named = answer.filter(|answer| answer.named);
    match named.and_then(|answer| answer.decided_by.first()) {
        Some(measure) => format!(
            "The study is decided by its {} alone ({}). The {others} others are exploratory: tested \
             together among themselves, they turn nothing.",
            measure.name(),
            plural(deciding, "comparison"),
        ),
        None => format!(
            "The {deciding} that decide are tested together, and so are the {others} others, which \
             decide nothing."
        ),
    }
}

/// The notes before the comparisons.
fn lead(analysis: &Analysis) -> String {
    let rule = &analysis.inference;
    let mut text = match analysis.duet {
        Some(_) => "The second variant beside the first, over valid trials that ran at the same time. \
                    Response times and throughput are compared window by window, so that a ratio may be \
                    another than that of the means beside it.",
        None => "Each cell beside the one with the first level of a factor, over valid trials \
                 paired by block. “Relative” is the mean of the blocks' ratios, on a logarithmic scale, so that \
                 it may be another than the ratio of the means beside it.",
    }
    .to_owned();
    if rule.judged > 0 {
        text.push_str(&format!(
            " {} A difference is called one only if it is beyond noise (joint p ≤ {}) and \
             larger than {} %{}; equal means shown to differ by less. Where the noise leaves room \
             for more, the words are: could not tell.",
            families(analysis.answer.as_ref(), rule.deciding, rule.judged),
            times(1.0 - rule.confidence),
            times(rule.smallest_relevant * 100.0),
            if rule.claims.is_empty() {
                ""
            } else {
                " and than what the control seems to differ from its cell"
            },
        ));
    }
    let unjudged = analysis
        .comparisons
        .iter()
        .filter(|one| one.verdict.is_none())
        .max_by_key(|one| one.blocks);
    if let Some(reason) = unjudged.and_then(|one| one.reason.as_ref()) {
        let what = match (rule.judged, rule.asked) {
            (0, false) => " Without repeated trials these are ratios and no verdicts.".to_owned(),
            (0, true) => {
                format!(" No verdict is possible: {reason}. Ratios are shown without one.")
            }
            _ => format!(" Some have no verdict: {reason}. Ratios are shown without one."),
        };
        text.push_str(&what);
    }
    if rule.pairs_left_out > 0 {
        text.push_str(&format!(
            " {} beyond the first are not compared.",
            plural(rule.pairs_left_out, "pair")
        ));
    }
    text
}
