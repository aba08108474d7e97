//! The paths of months and weeks.

use jiff::civil::Date;

use crate::zone;

/// The path of imported entries that are no events.
pub(crate) const OTHERS: &str = "/calendar/others";

/// The path of a day's month.
pub(crate) fn month_path(day: Date) -> String {
    format!("/calendar/month/{:04}-{:02}", day.year(), day.month())
}

/// The path of a day's week.
pub(crate) fn week_path(day: Date) -> String {
    format!("/calendar/week/{}", zone::plain_day(monday_of(day)))
}

/// The Monday of a day's week.
pub(crate) fn monday_of(day: Date) -> Date {
    zone::days_after(day, -i32::try_from(zone::weekday(day)).unwrap_or(0))
}
