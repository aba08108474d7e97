//! The entries of a calendar in a range of days, in its owner's time zone.

use std::ops::Range;

use groupware_calendar::{
    self as calendar, Answer, CalendarError, Entry, ScanBudget, State as Stand, Status,
};
use groupware_service::Service;
use groupware_store::Snapshot;
use groupware_text::push_encoded;
use jiff::civil::{Date, DateTime, Time};
use maud::{Markup, html};

use crate::calendar_path::OTHERS;
use crate::error::PageError;
use crate::visitor::SignedIn;
use crate::zone::{self, Zone};

/// Most entries of one page.
const MOST: usize = 1000;
/// Days and times without a zone sort as UTC: no zone is further away from it.
const SLACK: i64 = 86_400;

/// An entry on a page of days.
pub(crate) struct Item {
    pub(crate) path: String,
    title: String,
    place: Option<String>,
    pub(crate) start: DateTime,
    /// At or after the start.
    pub(crate) end: DateTime,
    pub(crate) is_all_day: bool,
    certainty: Certainty,
}

/// Whether an entry takes place, and its owner attends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Certainty {
    /// It takes place, and its owner attends.
    Sure,
    /// It may take place, or its owner may attend.
    Tentative,
    /// Its owner has not answered the invitation.
    Open,
    /// It doesn't take place.
    Cancelled,
}

impl Certainty {
    pub(crate) fn of(entry: &Entry) -> Self {
        match (entry.event.details.status, &entry.state) {
            (Status::Cancelled, _) | (_, Stand::Cancelled) => Self::Cancelled,
            (_, Stand::Invited { .. }) => Self::Open,
            (Status::Tentative, _) | (_, Stand::Tentative) => Self::Tentative,
            _ if entry.own_answer() == Some(Answer::Tentative) => Self::Tentative,
            (Status::Confirmed, Stand::Own | Stand::Accepted | Stand::Imported(_)) => Self::Sure,
        }
    }
}

impl Item {
    fn of(entry: &Entry, zone: &Zone) -> Self {
        let details = &entry.event.details;
        let start = zone.of_moment(&details.start);
        Self {
            path: path(entry),
            title: title(entry).to_owned(),
            place: details.location.clone().filter(|place| !place.is_empty()),
            start,
            end: zone.of_moment(&details.end).max(start),
            is_all_day: details.start.is_day(),
            certainty: Certainty::of(entry),
        }
    }

    /// The last day of the entry: an end at midnight belongs to the day before.
    fn last_day(&self) -> Date {
        let day = self.end.date();
        match self.end.time() == Time::midnight() && day > self.start.date() {
            true => zone::days_after(day, -1),
            false => day,
        }
    }

    pub(crate) fn is_on(&self, day: Date) -> bool {
        (self.start.date()..=self.last_day()).contains(&day)
    }

    /// Returns true if it is shown outside the hours of a day: it takes all day, or lasts overnight.
    pub(crate) fn is_of_days(&self) -> bool {
        self.is_all_day || self.last_day() > self.start.date()
    }

    fn class(&self) -> &'static str {
        match self.certainty {
            Certainty::Sure => "item",
            Certainty::Tentative => "item tentative",
            Certainty::Open => "item invited",
            Certainty::Cancelled => "item cancelled",
        }
    }

    /// The meaning of the entry's colour, as text.
    fn remark(&self) -> Option<&'static str> {
        match self.certainty {
            Certainty::Sure => None,
            Certainty::Tentative => Some("tentative"),
            Certainty::Open => Some("not answered"),
            Certainty::Cancelled => Some("cancelled"),
        }
    }

    /// The link in a day's list.
    pub(crate) fn link(&self, day: Date, with_place: bool) -> Markup {
        let starts_here = self.start.date() == day && !self.is_all_day;
        html! {
            a class=(self.class()) href=(self.path) {
                @if starts_here { span.at { (zone::time(self.start)) } " " }
                span.what { bdi { (self.title) } }
                @if let Some(remark) = self.remark() { span.unseen { " (" (remark) ")" } }
                @if with_place && let Some(place) = &self.place { span.where { " " bdi { (place) } } }
            }
        }
    }
}

/// The path of an entry's page.
pub(crate) fn path(entry: &Entry) -> String {
    let mut path = String::new();
    let name = match entry.notice() {
        Some(notice) => {
            path.push_str("/invitations/");
            notice.into()
        }
        None => {
            path.push_str("/calendar/event/");
            entry.name()
        }
    };
    push_encoded(&mut path, &name, b"");
    path
}

/// The path of the page of all instances of an event.
pub(crate) fn series_path(entry: &Entry) -> String {
    let mut path = "/calendar/event/".to_owned();
    push_encoded(&mut path, &entry.event.uid, b"");
    path
}

/// Returns true if it has a date or a due date.
pub(crate) fn is_dated(entry: &Entry) -> bool {
    entry.imported().is_none_or(calendar::Imported::is_dated)
}

/// The title of an entry.
pub(crate) fn title(entry: &Entry) -> &str {
    let summary = entry.event.details.summary.as_deref();
    match summary.map(str::trim) {
        None | Some("") => "(no title)",
        Some(title) => title,
    }
}

/// A range of days of a calendar.
#[derive(Debug, Clone)]
struct Days {
    mailbox: String,
    zone: Zone,
    days: Range<Date>,
}

impl Days {
    /// Returns the entries on these days; `None` if the scan budget is exceeded.
    fn items(
        &self,
        snapshot: &dyn Snapshot,
        reach: ScanBudget,
    ) -> Result<Option<Vec<Item>>, CalendarError> {
        let (zone, days) = (&self.zone, &self.days);
        let seconds = zone.day_start(days.start) - SLACK..zone.day_start(days.end) + SLACK;
        let mut items = Vec::new();
        let mut keep = |entry: Entry| {
            let item = Item::of(&entry, zone);
            if item.start.date() < days.end && item.last_day() >= days.start {
                items.push(item);
            }
        };
        let range = (seconds, MOST);
        let is_all = calendar::entries(snapshot, &self.mailbox, range, reach, &mut keep)?;
        Ok(is_all.then_some(items))
    }
}

/// Returns the entries on a range of days, all-day entries first.
///
/// # Errors
/// The errors of the store.
pub(crate) async fn load(
    service: &Service,
    visitor: &SignedIn,
    days: Range<Date>,
) -> Result<Vec<Item>, PageError> {
    let days = Days {
        mailbox: visitor.mailbox().to_owned(),
        zone: visitor.zone.clone(),
        days,
    };
    let quick = groupware_service::calendar::read(service, |snapshot| {
        days.items(snapshot, ScanBudget::QUICK)
    })?;
    let mut items = match quick {
        Some(items) => items,
        // Restarted on the blocking pool, where it delays no other request.
        None => {
            let look = move |snapshot: &dyn Snapshot| days.items(snapshot, ScanBudget::WHOLE);
            let whole = service.read(visitor.owner.caller(), true, look).await?;
            whole.unwrap_or_default()
        }
    };
    items.sort_by_key(|item| (!item.is_of_days(), item.start, item.end));
    Ok(items)
}

/// The link to entries outside of all months, if there are any.
pub(crate) fn foot(service: &Service, visitor: &SignedIn) -> Result<Markup, PageError> {
    let has_others = groupware_service::calendar::read(service, |snapshot| {
        calendar::has_others(snapshot, visitor.mailbox())
    })?;
    Ok(html! {
        @if has_others { p.lead { a href=(OTHERS) { "Tasks and journals" } } }
    })
}

/// Links to other days, to the other view, and to a new event.
pub(crate) fn head(title: &str, ways: &Ways<'_>) -> Markup {
    html! {
        div.head {
            h1 { (title) }
            div.tools {
                nav.steps aria-label="Days" {
                    a.button href=(ways.before) rel="prev" { span aria-hidden="true" { "‹" } span.unseen { (ways.before_name) } }
                    a.button href=(ways.now) { "Today" }
                    a.button href=(ways.after) rel="next" { span aria-hidden="true" { "›" } span.unseen { (ways.after_name) } }
                }
                nav.views aria-label="View" {
                    a.button href=(ways.month) aria-current=[ways.is_month.then_some("true")] { "Month" }
                    a.button href=(ways.week) aria-current=[(!ways.is_month).then_some("true")] { "Week" }
                }
                a.button.primary href="/calendar/new" { "New" span.word { " event" } }
            }
        }
    }
}

/// The link targets of a page of days.
pub(crate) struct Ways<'a> {
    pub(crate) before: String,
    pub(crate) before_name: &'a str,
    pub(crate) now: &'a str,
    pub(crate) after: String,
    pub(crate) after_name: &'a str,
    pub(crate) month: String,
    pub(crate) week: String,
    pub(crate) is_month: bool,
}
