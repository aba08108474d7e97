//! Single values of components, as parsed by calcard. *Absent: time zones.*

use calcard::common::PartialDateTime;
use calcard::icalendar::{
    ICalendarComponent, ICalendarDuration, ICalendarEntry, ICalendarParameterName as Parameter,
    ICalendarProperty as Property, ICalendarValue,
};
use jiff::Span;
use jiff::civil::{Date, DateTime, Time};

/// The first text value of a property.
pub fn text<'a>(component: &'a ICalendarComponent, property: &Property) -> Option<&'a str> {
    component.property(property)?.values.first()?.as_text()
}

/// The text of a parameter.
pub fn parameter(entry: &ICalendarEntry, name: &Parameter) -> Option<String> {
    entry.parameter(name)?.as_text().map(str::to_owned)
}

/// A non-negative number of a property.
pub fn integer(component: &ICalendarComponent, property: &Property) -> Option<u32> {
    let number = component.property(property)?.values.first()?.as_integer()?;
    u32::try_from(number).ok()
}

/// The DURATION of a component.
///
/// # Errors
/// A description of what is wrong with it.
pub fn duration(component: &ICalendarComponent) -> Result<Option<Span>, &'static str> {
    let Some(entry) = component.property(&Property::Duration) else {
        return Ok(None);
    };
    let Some(ICalendarValue::Duration(duration)) = entry.values.first() else {
        return Err("DURATION is none");
    };
    let span = span(duration).ok_or("DURATION is out of range")?;
    Ok(Some(span))
}

/// Converts a non-negative duration.
pub fn span(duration: &ICalendarDuration) -> Option<Span> {
    let days = i64::from(duration.weeks) * 7 + i64::from(duration.days);
    let span = Span::new()
        .try_days(days)
        .and_then(|span| span.try_hours(duration.hours))
        .and_then(|span| span.try_minutes(duration.minutes))
        .and_then(|span| span.try_seconds(duration.seconds));
    span.ok().filter(|_| !duration.neg)
}

/// The date of a value, in the years 1 to 9999.
pub fn civil_date(value: &PartialDateTime) -> Option<Date> {
    let year = i16::try_from(value.year?).ok().filter(|year| *year >= 1)?;
    let month = i8::try_from(value.month?).ok()?;
    let day = i8::try_from(value.day?).ok()?;
    Date::new(year, month, day).ok().filter(|_| year <= 9999)
}

/// The wall clock of a value, whatever its zone; midnight for a date.
pub fn plain_time(value: &PartialDateTime) -> Option<DateTime> {
    let date = civil_date(value)?;
    let Some(hour) = value.hour else {
        return Some(date.to_datetime(Time::midnight()));
    };
    let part = |number: u8| i8::try_from(number).ok();
    let (minute, second) = (value.minute.unwrap_or(0), value.second.unwrap_or(0));
    // A leap second becomes the last second of its minute.
    let clock = Time::new(part(hour)?, part(minute)?, part(second)?.min(59), 0).ok()?;
    Some(date.to_datetime(clock))
}

/// The value's UTC offset in seconds, positive east.
pub fn offset(value: &PartialDateTime) -> Option<i64> {
    let minutes = i64::from(value.tz_minute.unwrap_or(0));
    let seconds = i64::from(value.tz_hour?) * 3600 + minutes * 60;
    Some(if value.tz_minus { -seconds } else { seconds })
}
