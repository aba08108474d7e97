//! Figures of the page: the few most important ones, those of each cell of the study, and those of two factors.

use maud::{Markup, html};

use super::parts::frame;
use crate::document::{CellHead, Figure, FigureEntry, Figures, KeyFigure, Matrix, Published};
use crate::format::ratio;

/// A table with more columns has the page's whole width.
const COLUMNS_OF_HALF: usize = 3;

pub(super) fn key_figures(all: &[KeyFigure]) -> Markup {
    html! {
        dl.tiles {
            @for one in all {
                div.tile {
                    dt { (one.name) }
                    dd.value {
                        (one.text)
                        @if !one.unit.is_empty() { small { (one.unit) } }
                    }
                    dd.than { @if let Some(published) = &one.published { (than(published)) } }
                }
            }
        }
    }
}

fn than(published: &Published) -> String {
    let times = published.ratio;
    let times = times.map_or_else(String::new, |times| format!(" {}", ratio(times)));
    format!("published {}{times}", published.text)
}

/// Names down, cells of the study across; the parts of an entry have a column each.
pub(super) fn figures(figures: &Figures) -> Markup {
    let mut under: Vec<&str> = figures.parts.iter().map(|part| part.name).collect();
    if figures.published.is_some() {
        under.extend(["published", "×"]);
    }
    let rows = html! {
        thead {
            @if under.len() > 1 { (two_heads(figures, &under)) } @else { (one_head(figures)) }
        }
        tbody {
            @for row in &figures.rows {
                tr {
                    th scope="row" { (row.name) }
                    @for one in &row.entries { (entry(figures, one)) }
                }
                "\n"
            }
        }
    };
    let sorts = figures.parts.len() > 1;
    let note = figures.published.as_ref().and_then(|note| note.0.as_ref());
    html! {
        @if let Some(note) = note { p.lead { "Published figures: " (note) "." } }
        (frame(if sorts { "sorts" } else { "" }, figures.name, rows))
    }
}

fn one_head(figures: &Figures) -> Markup {
    html! {
        tr {
            th scope="col" { (figures.of) }
            @for cell in &figures.cells { th.edge scope="col" { (label(cell)) } }
        }
    }
}

fn two_heads(figures: &Figures, under: &[&str]) -> Markup {
    html! {
        tr {
            th {}
            @for cell in &figures.cells {
                th.group.edge scope="colgroup" colspan=(under.len()) { (label(cell)) }
            }
        }
        tr {
            th scope="col" { (figures.of) }
            @for _ in &figures.cells {
                @for (at, head) in under.iter().enumerate() {
                    th scope="col" class=[(at == 0).then_some("edge")] { (head) }
                }
            }
        }
    }
}

fn label(cell: &CellHead) -> String {
    match (cell.valid, cell.trials) {
        (0, _) => format!("{} ✕ invalid", cell.label),
        (valid, all) if valid < all => format!("{} ({valid} of {all} valid)", cell.label),
        _ => cell.label.clone(),
    }
}

fn entry(figures: &Figures, entry: &FigureEntry) -> Markup {
    let essential = figures.parts.iter().position(|part| !part.is_detail);
    html! {
        @for (at, figure) in entry.figures.iter().enumerate() {
            @match &entry.bound {
                // The known bound replaces unknown figures.
                Some(bound) if Some(at) == essential => (number(bound, at)),
                _ => (number(figure, at)),
            }
        }
        @if figures.published.is_some() { (beside(entry.published.as_ref())) }
    }
}

fn number(figure: &Figure, at: usize) -> Markup {
    html! { td class=[(at == 0).then_some("edge")] data-v=[figure.value] { (figure.text) } }
}

fn beside(published: Option<&Published>) -> Markup {
    let times = published.and_then(|published| published.ratio);
    html! {
        td.pub data-v=[published.and_then(|published| published.value)] {
            @if let Some(published) = published { (published.text) }
        }
        td.ratio data-v=[times] { @if let Some(times) = times { (ratio(times)) } }
    }
}

/// One table per measure, the first factor down, the second across.
pub(super) fn matrices(all: &[Matrix]) -> Markup {
    let is_wide = all.iter().any(|one| one.levels.len() > COLUMNS_OF_HALF);
    html! {
        div class={ "panels" @if is_wide { " wide" } } {
            @for one in all { div { (matrix(one)) } }
        }
    }
}

fn matrix(matrix: &Matrix) -> Markup {
    let rows = html! {
        thead { tr {
            th scope="col" { (matrix.title) }
            @for level in &matrix.levels { th scope="col" { (matrix.factor) " " (level) } }
        } }
        tbody {
            @for (name, entries) in &matrix.rows {
                tr {
                    th scope="row" { (name) }
                    @for one in entries {
                        td {
                            (one.mean)
                            small { (one.spread) }
                            @if !one.published.is_empty() {
                                small.pub { "published " (one.published) }
                            }
                        }
                    }
                }
                "\n"
            }
        }
    };
    frame("matrix", &matrix.title, rows)
}
