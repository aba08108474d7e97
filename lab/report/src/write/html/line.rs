//! What the system carries, drawn: the load line as the mark on a ship's hull with the levels that were
//! tried, the scalability law with its band, and arrivals offered beside those delivered.

use std::fmt::Write as _;

use super::charts::{Ink, Line, multiples, nice_end, nice_step};
use super::escape::escape;
use super::{Page, figures};
use crate::Analysis;
use crate::format::{count, figure, times};
use crate::model::{LineLevel, LoadLine, Scaling, UslPoint, Verdict};
use lab_analysis::load_line_figure;

/// What charts of arrivals are drawn against.
const ARRIVALS: &str = "the rate of arrivals";
/// Height of a level's row.
const ROW: f64 = 24.0;
/// Where the hull's scale stands.
const SCALE_X: f64 = 168.0;
/// The ring and the bar through it.
const RING: (f64, f64) = (72.0, 34.0);
const WIDTH: f64 = 520.0;
/// More trials at a level than this are told by their number alone.
const MOST_MARKS: u32 = 12;

/// The ship's mark of each load line, under the headline.
pub(super) fn marks(page: &mut Page, analysis: &Analysis) {
    if analysis.load_lines.is_empty() {
        return;
    }
    page.raw("<div class=\"lines\">\n");
    for line in &analysis.load_lines {
        page.raw("<figure class=\"line\">\n");
        if analysis.load_lines.len() > 1 {
            page.element("figcaption", "", &line.label);
        }
        page.raw(&mark(line));
        if analysis.load_lines.len() > 1 {
            page.element("figcaption", "class=\"meta\"", &load_line_figure(line));
        }
        page.raw("</figure>\n");
    }
    page.raw("</div>\n");
    page.raw("<ul class=\"key\">\n<li><b class=\"carried\">●</b> a trial that carried it</li>\n");
    page.raw("<li><b class=\"missed\">○</b> one that did not</li>\n");
    page.raw("<li><b class=\"none\">×</b> no measurement</li>\n");
    page.raw("<li><i class=\"band\"></i>where the line may lie</li>\n</ul>\n");
}

/// Levels stand one above the other, the most on top, as draught marks on a hull; they are not to
/// scale, because a search tries most of them close to the line.
fn mark(line: &LoadLine) -> String {
    let rows = line.levels.len().max(1) as f64;
    let height = (rows * ROW + 40.0).max(RING.1 * 2.0 + 34.0);
    let bottom = height - 20.0;
    let y = |at: usize| bottom - (at as f64 + 0.5) * ROW;
    let carried = |level: &&LineLevel| line.users.is_some_and(|users| level.users <= users);
    let below = line.levels.iter().filter(carried).count();
    // The ring needs room on both sides, also of a line at the top or the bottom.
    let line_y = (bottom - below as f64 * ROW).clamp(RING.1 + 6.0, height - RING.1 - 6.0);
    let water_y = bottom - below as f64 * ROW;
    let mut svg = format!(
        "<svg class=\"chart hull\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">",
        escape(&format!("Load line: {}", load_line_figure(line)))
    );
    if let Some((from, to)) = band(line, bottom) {
        let _ = write!(
            svg,
            "<rect x=\"{SCALE_X}\" y=\"{to:.1}\" width=\"{:.1}\" height=\"{:.1}\" \
             fill=\"var(--band)\"/>",
            WIDTH - SCALE_X,
            from - to
        );
    }
    let _ = write!(
        svg,
        "<path d=\"M{SCALE_X} 8V{:.1}\" stroke=\"var(--axis)\" stroke-width=\"1.5\"/>",
        height - 8.0
    );
    for (at, level) in line.levels.iter().enumerate() {
        row(&mut svg, level, y(at));
    }
    let (x, radius) = RING;
    let _ = writeln!(
        svg,
        "<g fill=\"none\" stroke=\"var(--first)\"><circle cx=\"{x}\" cy=\"{line_y:.1}\" \
         r=\"{radius}\" stroke-width=\"7\"/><path d=\"M10 {line_y:.1}H{:.1}\" stroke-width=\"7\"/>\
         <path d=\"M{:.1} {line_y:.1}L{SCALE_X} {water_y:.1}H{WIDTH}\" stroke-width=\"2\" \
         stroke-dasharray=\"6 4\"/></g></svg>",
        x * 2.0 - 10.0,
        x * 2.0 - 10.0,
    );
    svg
}

/// Where the line may lie, from the lower end's row to the upper end's.
fn band(line: &LoadLine, bottom: f64) -> Option<(f64, f64)> {
    let rows = |users: u32| {
        line.levels
            .iter()
            .filter(|level| level.users <= users)
            .count()
    };
    let all = line.levels.len();
    let from = line.low.map_or(0, rows);
    let to = line.high.map_or(all, |high| rows(high).max(from));
    let height = |rows: usize| bottom - rows as f64 * ROW;
    // Between neighbouring levels a band is as high as a line is wide: say where it is all the same.
    let half = if from == to { 4.0 } else { 0.0 };
    (all > 0).then(|| (height(from) + half, height(to) - half))
}

fn row(svg: &mut String, level: &LineLevel, y: f64) {
    let _ = write!(
        svg,
        "<path d=\"M{:.1} {y:.1}H{SCALE_X}\" stroke=\"var(--axis)\" stroke-width=\"1.5\"/>\
         <text x=\"{:.1}\" y=\"{:.1}\" fill=\"var(--ink)\" font-size=\"14\" text-anchor=\"end\">{}\
         </text>",
        SCALE_X - 7.0,
        SCALE_X + 84.0,
        y + 5.0,
        count(u64::from(level.users))
    );
    let trials = [
        ("●", "--good", level.carried),
        ("○", "--bad", level.not_carried),
        ("×", "--muted", level.invalid),
    ];
    let mut x = SCALE_X + 102.0;
    for (mark, ink, n) in trials {
        for _ in 0..n.min(MOST_MARKS) {
            let _ = write!(
                svg,
                "<text x=\"{x:.1}\" y=\"{:.1}\" fill=\"var({ink})\" font-size=\"16\">{mark}</text>",
                y + 5.5
            );
            x += 16.0;
        }
        if n > MOST_MARKS {
            let _ = write!(
                svg,
                "<text x=\"{x:.1}\" y=\"{:.1}\" fill=\"var(--muted)\" font-size=\"12\">{n} in all\
                 </text>",
                y + 5.0
            );
            x += 60.0;
        }
    }
}

/// The scalability law with its band, the trials, and the peak.
pub(super) fn scaling(page: &mut Page, analysis: &Analysis) {
    let Some(usl) = &analysis.usl else {
        return;
    };
    page.section(
        "How throughput scales",
        "The universal scalability law, X(N) = γN ÷ (1 + α(N − 1) + βN(N − 1)), fitted to the valid \
         trials; a dot is a trial.",
    );
    page.raw("<ul class=\"key\">\n<li><i></i>the law</li>\n<li><i class=\"band\"></i>its 95 % band</li>\n");
    if usl.peak_users.is_some() {
        page.raw("<li><i class=\"second\"></i>its peak</li>\n");
    }
    page.raw("</ul>\n<div class=\"grid\">\n<section class=\"card\"><h3>Throughput");
    page.element(
        "span",
        "class=\"unit\"",
        "transactions per s, against users",
    );
    page.raw("</h3>\n");
    page.raw(&law(usl));
    page.raw("</section>\n<section class=\"card\"><h3>The law's figures</h3>\n");
    page.facts(&law_facts(usl));
    page.raw("</section>\n</div>\n");
}

fn law_facts(usl: &Scaling) -> Vec<(&'static str, String)> {
    let with_ends = |one: crate::model::Estimate| {
        let end = |end: Option<f64>| end.map_or_else(|| "open".to_owned(), times);
        format!(
            "{} ({} to {})",
            times(one.mean),
            end(one.low),
            end(one.high)
        )
    };
    let peak = match (usl.peak_users, usl.peak_per_s) {
        (Some(users), Some(per_s)) => {
            format!("{} users, {} per s", with_ends(users), figure(per_s))
        }
        _ => "none shown: β's interval holds 0".to_owned(),
    };
    vec![
        ("γ, one user, per s", with_ends(usl.gamma_per_s)),
        ("α, contention", with_ends(usl.alpha)),
        ("β, coherence", format!("{:.2e}", usl.beta.mean)),
        ("peak", peak),
        ("scatter", format!("{} %", times(usl.scatter * 100.0))),
    ]
}

/// The chart of the law, in CSS pixels.
fn law(usl: &Scaling) -> String {
    let (left, right, top, bottom) = (46.0, 390.0, 8.0, 190.0);
    let most_users = usl
        .points
        .iter()
        .map(|point| point.users)
        .fold(1.0, f64::max);
    let highest = |point: &UslPoint| {
        let law = point.law_per_s;
        point.measured_per_s.unwrap_or_default().max(law.mean)
    };
    let most = nice_end(usl.points.iter().map(highest).fold(0.0, f64::max) * 1.05);
    let x = |users: f64| left + users / most_users * (right - left);
    let y = |per_s: f64| bottom - (per_s / most).clamp(0.0, 1.0) * (bottom - top);
    let mut svg =
        "<svg class=\"chart\" viewBox=\"0 0 400 212\" role=\"img\" aria-label=\"Throughput \
                   against users with the fitted law\">"
            .to_owned();
    for tick in multiples(nice_step(most, 5.0), most) {
        let ink = if tick == 0.0 { "--axis" } else { "--grid" };
        let _ = write!(
            svg,
            "<path d=\"M{left} {y:.1}H{right}\" stroke=\"var({ink})\"/><text x=\"{:.1}\" \
             y=\"{:.1}\" fill=\"var(--muted)\" font-size=\"12\" text-anchor=\"end\">{}</text>",
            left - 7.0,
            y(tick) + 4.0,
            times(tick),
            y = y(tick)
        );
    }
    for tick in multiples(nice_step(most_users, 5.0), most_users) {
        let _ = write!(
            svg,
            "<text x=\"{:.1}\" y=\"206\" fill=\"var(--muted)\" font-size=\"12\" \
             text-anchor=\"middle\">{}</text>",
            x(tick),
            times(tick)
        );
    }
    let place = |users: f64, per_s: f64| format!("{:.1} {:.1}", x(users), y(per_s));
    let upper = usl.points.iter().map(|point| {
        let high = point.law_per_s.high.unwrap_or(most);
        place(point.users, high)
    });
    let lower = usl.points.iter().rev().map(|point| {
        let low = point.law_per_s.low.unwrap_or_default();
        place(point.users, low)
    });
    let outline: Vec<String> = upper.chain(lower).collect();
    let _ = write!(
        svg,
        "<path d=\"M{}Z\" fill=\"var(--band)\"/>",
        outline.join("L")
    );
    let curve = usl
        .points
        .iter()
        .map(|point| place(point.users, point.law_per_s.mean));
    let _ = write!(
        svg,
        "<path d=\"M{}\" fill=\"none\" stroke=\"var(--first)\" stroke-width=\"2\"/>",
        curve.collect::<Vec<_>>().join("L")
    );
    if let Some(peak) = usl.peak_users.filter(|peak| peak.mean <= most_users) {
        let _ = write!(
            svg,
            "<path d=\"M{x:.1} {top}V{bottom}\" stroke=\"var(--second)\" stroke-width=\"2\"/>",
            x = x(peak.mean)
        );
    }
    for point in &usl.points {
        if let Some(measured) = point.measured_per_s {
            let _ = write!(
                svg,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.5\" fill=\"var(--first)\"/>",
                x(point.users),
                y(measured)
            );
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// Load offered and load delivered where sessions arrive on their own at two rates or more.
pub(super) fn arrivals(page: &mut Page, analysis: &Analysis) {
    let cells = analysis.cells.iter().filter_map(|cell| {
        let arrivals = cell.arrivals?;
        let trials = analysis.trials.iter().filter(|trial| {
            trial.cell == cell.cell && trial.verdict == Verdict::Valid && !trial.control
        });
        let rates: Vec<(f64, f64)> = trials
            .filter_map(|trial| Some((trial.offered_per_s?, trial.delivered_per_s?)))
            .collect();
        let n = rates.len() as f64;
        let mean =
            |of: fn(&(f64, f64)) -> f64| (n > 0.0).then(|| rates.iter().map(of).sum::<f64>() / n);
        Some((arrivals, mean(|rate| rate.0), mean(|rate| rate.1), cell))
    });
    let mut cells: Vec<_> = cells.collect();
    cells.sort_by(|a, b| a.0.planned_per_s.total_cmp(&b.0.planned_per_s));
    let mut rates: Vec<f64> = cells.iter().map(|cell| cell.0.planned_per_s).collect();
    rates.dedup();
    // Several cells of one rate would stand above each other.
    if rates.len() < 2 || rates.len() < cells.len() {
        return;
    }
    page.section(
        "Against the rate of arrivals",
        "Sessions planned per second along the bottom.",
    );
    figures::key(
        page,
        &[("", "delivered, response"), ("second", "offered, service")],
        None,
    );
    page.raw("<div class=\"grid\">\n");
    let line = |ink: Ink, of: &dyn Fn(usize) -> Option<f64>| Line {
        ink,
        points: (0..cells.len())
            .map(|at| (cells[at].0.planned_per_s, of(at)))
            .collect(),
    };
    let load = [
        line(Ink::Second, &|at| cells[at].1),
        line(Ink::First, &|at| cells[at].2),
    ];
    figures::lines_card(
        page,
        ("Requests offered and delivered", ARRIVALS),
        "per s",
        &load,
    );
    let sessions = [
        line(Ink::Second, &|at| Some(cells[at].0.planned_per_s)),
        line(Ink::First, &|at| Some(cells[at].0.arrived_per_s)),
    ];
    figures::lines_card(
        page,
        ("Sessions planned and arrived", ARRIVALS),
        "per s",
        &sessions,
    );
    let times = [
        line(Ink::Second, &|at| {
            cells[at].3.service_ms?.p95.map(|p95| p95.mean)
        }),
        line(Ink::First, &|at| {
            cells[at].3.response_ms.p95.map(|p95| p95.mean)
        }),
    ];
    figures::lines_card(page, ("p95 response and service", ARRIVALS), "ms", &times);
    page.raw("</div>\n");
}
