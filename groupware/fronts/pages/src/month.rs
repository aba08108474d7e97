//! The calendar by months.

use axum::extract::{Path, State};
use axum::response::Response;
use groupware_service::Service;
use jiff::civil::Date;
use maud::{Markup, html};

use crate::agenda::{self, Item, Ways};
use crate::calendar_path::{monday_of, month_path, week_path};
use crate::error::PageError;
use crate::layout::{self, NavItem};
use crate::visitor::SignedIn;
use crate::zone;

/// Entries shown per day; the rest is counted.
const SHOWN: usize = 4;

type Reply = Result<Response, PageError>;

pub(crate) async fn current(State(service): State<Service>, visitor: SignedIn) -> Reply {
    let first = visitor.today.first_of_month();
    render(&service, &visitor, first).await
}

pub(crate) async fn show(
    State(service): State<Service>,
    visitor: SignedIn,
    Path(month): Path<String>,
) -> Reply {
    let first = zone::parse_day(&format!("{month}-01")).ok_or(PageError::NotFound)?;
    render(&service, &visitor, first).await
}

async fn render(service: &Service, visitor: &SignedIn, first: Date) -> Reply {
    let monday = monday_of(first);
    let next = zone::days_after(first.last_of_month(), 1);
    let weeks: Vec<Date> = (0..6)
        .map(|week| zone::days_after(monday, week * 7))
        .take_while(|monday| *monday < next)
        .collect();
    let end = zone::days_after(monday, 7 * i32::try_from(weeks.len()).unwrap_or(6));
    let items = agenda::load(service, visitor, monday..end).await?;
    let title = format!("{} {}", zone::month_name(first), first.year());
    let near = match visitor.today.first_of_month() == first {
        true => visitor.today,
        false => first,
    };
    let ways = Ways {
        before: month_path(zone::days_after(first, -1)),
        before_name: "Previous month",
        now: "/calendar",
        after: month_path(next),
        after_name: "Next month",
        month: month_path(first),
        week: week_path(near),
        is_month: true,
    };
    let main = html! {
        (agenda::head(&title, &ways))
        @if items.is_empty() {
            p.empty { "Nothing in this month yet. " a href="/calendar/new" { "Add an event" } }
        }
        table.month {
            caption.unseen { (title) }
            thead { tr {
                @for day in 0..7 {
                    @let name = zone::weekday_name(zone::days_after(monday, day));
                    th scope="col" { (name[..3]) span.unseen { (name[3..]) } }
                }
            } }
            tbody {
                @for monday in &weeks {
                    tr {
                        @for day in 0..7 {
                            (cell(visitor, first, zone::days_after(*monday, day), &items))
                        }
                    }
                }
            }
        }
        (agenda::foot(service, visitor)?)
    };
    layout::page(service, visitor, NavItem::Calendar, &title, &main)
}

fn cell(visitor: &SignedIn, month: Date, day: Date, items: &[Item]) -> Markup {
    let here: Vec<&Item> = items.iter().filter(|item| item.is_on(day)).collect();
    let is_today = day == visitor.today;
    let classes = [
        (day.month() != month.month()).then_some("other"),
        is_today.then_some("today"),
        here.is_empty().then_some("none"),
    ];
    let class = classes.into_iter().flatten().collect::<Vec<_>>().join(" ");
    // One entry more is shown rather than counted: the count takes the same room.
    let shown = match here.len() <= SHOWN + 1 {
        true => here.len(),
        false => SHOWN,
    };
    html! {
        td class=(class) {
            div.day {
                a.number href=(week_path(day)) aria-current=[is_today.then_some("date")] {
                    span aria-hidden="true" { span.narrow { (&zone::weekday_name(day)[..3]) " " } (day.day()) }
                    span.unseen { (zone::long_day(day)) }
                }
                a.add href={ "/calendar/new?day=" (zone::plain_day(day)) } {
                    span aria-hidden="true" { "+" } span.unseen { "New event on " (zone::long_day(day)) }
                }
            }
            @if !here.is_empty() {
                ul {
                    @for item in &here[..shown] { li { (item.link(day, false)) } }
                    @if here.len() > shown {
                        li { a.more href=(week_path(day)) { (here.len() - shown) " more" } }
                    }
                }
            }
        }
    }
}
