//! The calendar by weeks: the hours of seven days side by side, or one below the other on narrow
//! screens.

use axum::extract::{Path, State};
use axum::response::Response;
use groupware_service::Service;
use jiff::civil::Date;
use maud::{Markup, html};

use crate::agenda::{self, Item, Ways};
use crate::calendar_path::{monday_of, month_path, week_path};
use crate::error::PageError;
use crate::grid::{LANES, ROWS, ROWS_PER_HOUR};
use crate::layout::{self, NavItem};
use crate::visitor::SignedIn;
use crate::zone;

/// The hours that are always shown.
const WORKDAY: (usize, usize) = (8, 18);

type Reply = Result<Response, PageError>;

pub(crate) async fn current(State(service): State<Service>, visitor: SignedIn) -> Reply {
    let today = visitor.today;
    render(&service, &visitor, today).await
}

pub(crate) async fn show(
    State(service): State<Service>,
    visitor: SignedIn,
    Path(day): Path<String>,
) -> Reply {
    let day = zone::parse_day(&day).ok_or(PageError::NotFound)?;
    render(&service, &visitor, day).await
}

async fn render(service: &Service, visitor: &SignedIn, day: Date) -> Reply {
    let monday = monday_of(day);
    let next = zone::days_after(monday, 7);
    let sunday = zone::days_after(monday, 6);
    let items = agenda::load(service, visitor, monday..next).await?;
    let title = span_name(monday, sunday);
    let near = match (monday..next).contains(&visitor.today) {
        true => visitor.today,
        false => monday,
    };
    let ways = Ways {
        before: week_path(zone::days_after(monday, -1)),
        before_name: "Previous week",
        now: "/calendar/week",
        after: week_path(next),
        after_name: "Next week",
        month: month_path(near),
        week: week_path(monday),
        is_month: false,
    };
    let hours = hours_shown(&items);
    let main = html! {
        (agenda::head(&title, &ways))
        @if items.is_empty() {
            p.empty { "Nothing in this week yet. " a href="/calendar/new" { "Add an event" } }
        }
        div.week {
            ol.clock aria-hidden="true" {
                @for (at, hour) in (hours.0..hours.1).enumerate() {
                    li class={ "s" (at * ROWS_PER_HOUR) " l" (ROWS_PER_HOUR) } { (format!("{hour:02}:00")) }
                }
            }
            @for offset in 0..7 { (column(visitor, zone::days_after(monday, offset), &items, hours)) }
        }
        (agenda::foot(service, visitor)?)
    };
    layout::page(service, visitor, NavItem::Calendar, &title, &main)
}

/// `16 – 22 November 2026`.
fn span_name(monday: Date, sunday: Date) -> String {
    let end = format!(
        "{} {} {}",
        sunday.day(),
        zone::month_name(sunday),
        sunday.year()
    );
    let start = match (
        monday.month() == sunday.month(),
        monday.year() == sunday.year(),
    ) {
        (true, _) => format!("{}", monday.day()),
        (_, true) => format!("{} {}", monday.day(), zone::month_name(monday)),
        _ => format!(
            "{} {} {}",
            monday.day(),
            zone::month_name(monday),
            monday.year()
        ),
    };
    format!("{start} – {end}")
}

/// The range of hours that contains every entry, and at least a workday.
fn hours_shown(items: &[Item]) -> (usize, usize) {
    let timed = items.iter().filter(|item| !item.is_of_days());
    timed.fold(WORKDAY, |(first, last), item| {
        let rows = rows(item);
        (
            first.min(rows.0 / ROWS_PER_HOUR),
            last.max((rows.0 + rows.1).div_ceil(ROWS_PER_HOUR)),
        )
    })
}

/// First row and number of rows of an entry on its day.
fn rows(item: &Item) -> (usize, usize) {
    let minutes = |clock: jiff::civil::DateTime| {
        usize::try_from(i32::from(clock.hour()) * 60 + i32::from(clock.minute())).unwrap_or(0)
    };
    let start = minutes(item.start) / 15;
    let end = match item.end.date() > item.start.date() {
        true => ROWS,
        false => minutes(item.end).div_ceil(15),
    };
    // A line of text needs two rows.
    let length = end.saturating_sub(start).max(2);
    (start.min(ROWS - 2), length)
}

fn column(visitor: &SignedIn, day: Date, items: &[Item], hours: (usize, usize)) -> Markup {
    let of_days: Vec<_> = items
        .iter()
        .filter(|item| item.is_of_days() && item.is_on(day))
        .collect();
    let timed: Vec<_> = items
        .iter()
        .filter(|item| !item.is_of_days() && item.is_on(day))
        .collect();
    let lanes = lanes(&timed);
    let width = lanes.iter().map(|lane| lane.0).max().unwrap_or(1);
    let is_today = day == visitor.today;
    let none = of_days.is_empty() && timed.is_empty();
    let class = [
        "column",
        if is_today { " today" } else { "" },
        if none { " none" } else { "" },
    ];
    html! {
        section class=(class.concat()) id={ "d" (zone::plain_day(day)) } aria-labelledby={ "h" (zone::plain_day(day)) } {
            div.day {
                h2 id={ "h" (zone::plain_day(day)) } aria-current=[is_today.then_some("date")] {
                    (&zone::weekday_name(day)[..3]) " " span.number { (day.day()) }
                    span.unseen { " " (zone::month_name(day)) }
                }
                a.add href={ "/calendar/new?day=" (zone::plain_day(day)) } {
                    span aria-hidden="true" { "+" } span.unseen { "New event on " (zone::long_day(day)) }
                }
            }
            ul.days {
                @for item in of_days { li { (item.link(day, false)) } }
            }
            ul class={ "hours of" (width) } {
                @for (item, (lane, alone)) in timed.iter().zip(&lanes) {
                    @let (start, length) = rows(item);
                    @let place = if *alone { "wide".to_owned() } else { format!("c{lane}") };
                    li class={ "s" (start.saturating_sub(hours.0 * ROWS_PER_HOUR)) " l" (length) " " (place) } {
                        (item.link(day, true))
                    }
                }
                // Keeps a day without entries as long as the others.
                li class={ "s0 wide filler l" ((hours.1 - hours.0) * ROWS_PER_HOUR) } aria-hidden="true" {}
            }
        }
    }
}

/// Returns the lane of each entry, from 1, and whether no other is beside it. The entries are
/// sorted by their start.
fn lanes(items: &[&Item]) -> Vec<(usize, bool)> {
    let spans: Vec<_> = items.iter().map(|item| rows(item)).collect();
    let overlap = |a: &(usize, usize), b: &(usize, usize)| a.0 < b.0 + b.1 && b.0 < a.0 + a.1;
    let mut ends: Vec<usize> = Vec::new();
    let mut found = Vec::with_capacity(spans.len());
    for (index, span) in spans.iter().enumerate() {
        let free = ends.iter().position(|end| *end <= span.0);
        let lane = free.unwrap_or_else(|| {
            ends.push(0);
            ends.len() - 1
        });
        ends[lane] = span.0 + span.1;
        let others = spans
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != index);
        let alone = !others
            .map(|(_, other)| other)
            .any(|other| overlap(span, other));
        found.push(((lane + 1).min(LANES), alone));
    }
    found
}
