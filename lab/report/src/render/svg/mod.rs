//! Renders charts as SVG, with CSS variables for colours, so that they follow the page's theme. Titles, units, and keys
//! belong to the page.

mod bars;
mod drawing;
mod hull;
mod intervals;
mod plot;
mod scale;

use maud::Markup;

use crate::chart::Chart;

pub(crate) use hull::hull;
pub(crate) use plot::scales;

/// The chart as an element of the page.
pub(crate) fn chart(chart: &Chart) -> Markup {
    match chart {
        Chart::Plot(one) => plot::plot(one),
        Chart::Bars(one) => bars::bars(one),
        Chart::Intervals(one) => intervals::intervals(one),
    }
}
