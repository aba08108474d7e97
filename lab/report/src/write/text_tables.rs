//! Tables of the terminal whose columns are as wide as what stands in them: two factors, and published
//! figures that stand beside nothing.

use crate::Analysis;
use crate::format::{figure, or_none};
use crate::write::grids::{Grid, grids, lead, spread};
use crate::write::text_page::{Page, left, right};

/// Between two columns.
const GAP: usize = 2;
/// What the line with published figures is called.
const PUBLISHED: &str = "  published";

/// One table per measure, the first factor down, the second across. Below the means stand their
/// intervals and the published figures.
pub(crate) fn two_factors(page: &mut Page, analysis: &Analysis) {
    let grids = grids(analysis);
    if grids.is_empty() {
        return;
    }
    let names = &analysis.study.factors;
    page.section(&format!("By {} and {}", names[0], names[1]));
    let lead = lead(analysis);
    page.paragraph(
        &format!(
            "Means over valid trials; below them their 95 % intervals, and the published figures, \
             where there are any. {lead}"
        ),
        0,
    );
    for grid in grids {
        page.line("");
        page.paragraph(&grid.title, 2);
        table(page, &lines(&grid));
    }
}

/// The lines of a table; each has a name and a text per column.
fn lines(grid: &Grid) -> Vec<Vec<String>> {
    let mut lines = vec![heads(grid)];
    for (at, (name, figures)) in grid.rows.iter().zip(&grid.figures).enumerate() {
        let line = |name: &str, texts: &mut dyn Iterator<Item = String>| -> Vec<String> {
            std::iter::once(name.to_owned()).chain(texts).collect()
        };
        let mut means = figures
            .iter()
            .map(|one| or_none(one.map(|one| one.mean), figure));
        lines.push(line(name, &mut means));
        let spreads: Vec<String> = figures.iter().map(|one| spread(*one)).collect();
        if spreads.iter().any(|text| !text.is_empty()) {
            lines.push(line("", &mut spreads.into_iter()));
        }
        if let Some(published) = grid.published.get(at) {
            lines.push(line(PUBLISHED, &mut published.iter().cloned()));
        }
    }
    lines
}

/// The factor's name once, over the names of the rows, then its levels.
fn heads(grid: &Grid) -> Vec<String> {
    let (factor, levels) = grid.across();
    let levels = levels.into_iter().map(str::to_owned);
    std::iter::once(format!("  {factor} →"))
        .chain(levels)
        .collect()
}

/// Published files of which no row belongs to a cell of this study.
pub(crate) fn published_as_is(page: &mut Page, analysis: &Analysis) {
    for as_is in analysis.published.iter().filter_map(|it| it.as_is.as_ref()) {
        page.line("");
        let lines: Vec<Vec<String>> = std::iter::once(as_is.heads.clone())
            .chain(as_is.rows.iter().cloned())
            .collect();
        table(page, &lines);
        page.line("");
    }
}

/// Lines of texts, the first to the left; columns that don't fit stand below, beside the first again.
fn table(page: &mut Page, lines: &[Vec<String>]) {
    let count = lines.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        let texts = lines.iter().filter_map(|line| line.get(column));
        texts.map(|text| text.chars().count()).max().unwrap_or(0)
    };
    let names = width(0) + GAP;
    let mut from = 1;
    while from < count {
        let mut used = names + width(from) + GAP;
        let mut to = from + 1;
        while to < count && used + width(to) + GAP <= page.width {
            used += width(to) + GAP;
            to += 1;
        }
        for line in lines {
            let name = line.first().map_or("", String::as_str);
            let texts = (from..to).map(|column| {
                let text = line.get(column).map_or("", String::as_str);
                right(text, width(column) + GAP)
            });
            page.line(&format!(
                "{}{}",
                left(name, names),
                texts.collect::<String>()
            ));
        }
        from = to;
    }
}
