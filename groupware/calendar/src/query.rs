//! Query parameters of the lists: text in, validated ranges out. Unknown parameters are ignored, as in Domino; known
//! ones are parsed strictly.

use groupware_text::shortened;

use crate::{CalendarError, limits, time};

const DAY: i64 = 86_400;
/// The length of a range with only one end.
const DEFAULT_DAYS: i64 = 365;
/// The maximum length of a range in days; keeps arithmetic within the years 1 to 9999.
const MAX_DAYS: i64 = 36_525;

/// The format of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// Domino's JSON.
    #[default]
    Json,
    /// iCalendar text.
    ICalendar,
}

impl Format {
    /// Parses the `format` parameter of a resource without other parameters.
    ///
    /// # Errors
    /// 400 if the format is unknown.
    pub fn parse<'q>(
        pairs: impl IntoIterator<Item = (&'q str, &'q str)>,
    ) -> Result<Self, CalendarError> {
        match last(pairs, "format") {
            Some(value) => Self::from_value(value),
            None => Ok(Self::Json),
        }
    }

    fn from_value(value: &str) -> Result<Self, CalendarError> {
        if value.eq_ignore_ascii_case("json") {
            Ok(Self::Json)
        } else if value.eq_ignore_ascii_case("icalendar") {
            Ok(Self::ICalendar)
        } else {
            Err(invalid("format", value))
        }
    }

    /// The response's media type.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::ICalendar => "text/calendar",
        }
    }
}

/// A page of the event list: the events that start in `since..before`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventQuery {
    pub(crate) format: Format,
    pub(crate) since: i64,
    pub(crate) before: i64,
    pub(crate) start: usize,
    pub(crate) count: usize,
    pub(crate) fields: Option<Vec<&'static str>>,
}

impl EventQuery {
    /// Returns true if finding the page takes too long for requests on the same thread.
    pub fn is_long(&self) -> bool {
        self.start > limits::SKIPPED_AT_ONCE
    }
}

/// The parameters, unparsed.
#[derive(Default)]
struct Raw<'q> {
    since: Option<&'q str>,
    before: Option<&'q str>,
    sincenow: Option<&'q str>,
    days: Option<&'q str>,
    count: Option<&'q str>,
    start: Option<&'q str>,
    fields: Option<&'q str>,
    format: Option<&'q str>,
}

impl EventQuery {
    /// Parses `since`, `before`, `sincenow`, `days`, `count`, `start`, `fields`, `format`; `now` in seconds since 1970.
    /// The last value of a repeated parameter counts.
    ///
    /// # Errors
    /// 400 for invalid values, by Domino's documentation.
    pub fn parse<'q>(
        pairs: impl IntoIterator<Item = (&'q str, &'q str)>,
        now: i64,
    ) -> Result<Self, CalendarError> {
        let mut raw = Raw::default();
        for (name, value) in pairs {
            let slot = match name {
                "since" => &mut raw.since,
                "before" => &mut raw.before,
                "sincenow" => &mut raw.sincenow,
                "days" => &mut raw.days,
                "count" => &mut raw.count,
                "start" => &mut raw.start,
                "fields" => &mut raw.fields,
                "format" => &mut raw.format,
                _ => continue,
            };
            *slot = Some(value);
        }
        let (since, before) = raw.range(now)?;
        Ok(Self {
            format: raw.format.map_or(Ok(Format::Json), Format::from_value)?,
            since,
            before,
            start: raw.number("start", raw.start, 0..=i64::from(u32::MAX), 0)?,
            count: raw.number(
                "count",
                raw.count,
                1..=limits::PAGE_ENTRIES as i64,
                limits::DEFAULT_PAGE_ENTRIES,
            )?,
            fields: raw.fields.and_then(parse_fields),
        })
    }

    /// The format of the response.
    pub fn format(&self) -> Format {
        self.format
    }
}

impl Raw<'_> {
    /// The range, by Domino's rules: with one end missing it spans 365 days; with both missing it starts now.
    fn range(&self, now: i64) -> Result<(i64, i64), CalendarError> {
        if self.since.is_some() && self.sincenow.is_some() {
            return Err(CalendarError::bad_request(
                "The since and sincenow parameters can't be combined.",
            ));
        }
        if self.before.is_some() && self.days.is_some() {
            return Err(CalendarError::bad_request(
                "The before and days parameters can't be combined.",
            ));
        }
        let since = match (self.since, self.sincenow) {
            (Some(text), _) => Some(moment("since", text)?),
            (None, Some(text)) => Some(now + days("sincenow", text, -MAX_DAYS..=MAX_DAYS)? * DAY),
            (None, None) => None,
        };
        let before = self.before.map(|text| moment("before", text)).transpose()?;
        let span = self
            .days
            .map(|text| days("days", text, 1..=MAX_DAYS))
            .transpose()?;
        let reach = span.unwrap_or(DEFAULT_DAYS) * DAY;
        let (since, before) = match (since, before) {
            (Some(since), Some(before)) => (since, before),
            (Some(since), None) => (since, since + reach),
            (None, Some(before)) => (before - reach, before),
            (None, None) => (now, now + reach),
        };
        if before <= since {
            return Err(CalendarError::bad_request(
                "The before parameter must be later than since.",
            ));
        }
        Ok((since, before))
    }

    fn number(
        &self,
        name: &str,
        text: Option<&str>,
        range: std::ops::RangeInclusive<i64>,
        default: usize,
    ) -> Result<usize, CalendarError> {
        match text {
            None => Ok(default),
            Some(text) => integer(text)
                .filter(|number| range.contains(number))
                .and_then(|number| usize::try_from(number).ok())
                .ok_or_else(|| invalid(name, text)),
        }
    }
}

/// The selection of invitations.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InvitationQuery {
    /// Only events that start at this moment or later.
    pub(crate) since: Option<i64>,
    /// Only invitations received at this moment or later.
    pub(crate) received_since: Option<i64>,
    /// Only the event with this UID.
    pub(crate) uid: Option<String>,
}

impl InvitationQuery {
    /// Parses `since`, `receivedsince`, `id`.
    ///
    /// # Errors
    /// 400 for an invalid date.
    pub fn parse<'q>(
        pairs: impl IntoIterator<Item = (&'q str, &'q str)>,
    ) -> Result<Self, CalendarError> {
        let mut query = Self::default();
        for (name, value) in pairs {
            match name {
                "since" => query.since = Some(moment("since", value)?),
                "receivedsince" => query.received_since = Some(moment("receivedsince", value)?),
                "id" => query.uid = Some(value.to_owned()),
                _ => {}
            }
        }
        Ok(query)
    }
}

/// The names in `fields`, with the members that they keep. Two are misspelt in the original service and kept so.
const FIELDS: [(&str, &str); 19] = [
    ("categories", "categories"),
    ("class", "class"),
    ("end", "end"),
    ("id", "id"),
    ("location", "location"),
    ("priority", "priority"),
    ("reccurenceid", "recurrenceId"),
    ("sequence", "sequence"),
    ("start", "start"),
    ("status", "status"),
    ("summary", "summary"),
    ("transparency", "transparency"),
    ("url", "url"),
    ("x-lotus-apptype", "x-lotus-appttype"),
    ("x-lotus-appttype", "x-lotus-appttype"),
    ("x-lotus-noticetype", "x-lotus-noticetype"),
    ("x-lotus-onlinemeeting-url", "x-lotus-onlinemeeting-url"),
    ("x-lotus-organizer", "x-lotus-organizer"),
    ("x-lotus-room", "x-lotus-room"),
];

/// The members to keep; `None`, which keeps all, if no name is known.
fn parse_fields(text: &str) -> Option<Vec<&'static str>> {
    let fields: Vec<_> = text
        .split(',')
        .filter_map(|name| {
            let name = name.trim();
            FIELDS
                .iter()
                .find(|(known, _)| known.eq_ignore_ascii_case(name))
                .map(|(_, member)| *member)
        })
        .collect();
    (!fields.is_empty()).then_some(fields)
}

fn moment(name: &str, text: &str) -> Result<i64, CalendarError> {
    time::parse_extended(text).ok_or_else(|| invalid(name, text))
}

fn days(
    name: &str,
    text: &str,
    range: std::ops::RangeInclusive<i64>,
) -> Result<i64, CalendarError> {
    integer(text)
        .filter(|number| range.contains(number))
        .ok_or_else(|| invalid(name, text))
}

fn integer(text: &str) -> Option<i64> {
    text.parse().ok()
}

fn invalid(name: &str, text: &str) -> CalendarError {
    CalendarError::bad_request(format!(
        "Invalid value for parameter {name}: {}",
        shortened(text)
    ))
}

/// The last value of a parameter.
pub(crate) fn last<'q>(
    pairs: impl IntoIterator<Item = (&'q str, &'q str)>,
    name: &str,
) -> Option<&'q str> {
    pairs
        .into_iter()
        .filter(|(known, _)| *known == name)
        .last()
        .map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_767_225_600; // 2026-01-01T00:00:00Z

    fn parse(pairs: &[(&'static str, &'static str)]) -> Result<EventQuery, CalendarError> {
        EventQuery::parse(pairs.iter().copied(), NOW)
    }

    fn range(pairs: &[(&'static str, &'static str)]) -> (String, String) {
        let query = parse(pairs).unwrap();
        (time::extended(query.since), time::extended(query.before))
    }

    fn strings(a: &str, b: &str) -> (String, String) {
        (a.to_owned(), b.to_owned())
    }

    #[test]
    fn a_missing_end_reaches_a_year() {
        let (a, b) = ("2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z");
        assert_eq!(
            range(&[]),
            strings("2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z")
        );
        assert_eq!(range(&[("since", a)]), strings(a, "2027-03-01T00:00:00Z"));
        assert_eq!(range(&[("before", b)]), strings("2025-03-02T00:00:00Z", b));
        assert_eq!(range(&[("since", a), ("before", b)]), strings(a, b));
        assert_eq!(range(&[("since", a), ("days", "1")]), strings(a, b));
        assert_eq!(
            range(&[("sincenow", "-1"), ("days", "2")]),
            strings("2025-12-31T00:00:00Z", "2026-01-02T00:00:00Z")
        );
    }

    #[test]
    fn wrong_parameters_are_400() {
        let a = "2026-03-01T00:00:00Z";
        let cases: &[&[(&'static str, &'static str)]] = &[
            &[("since", "2026-03-01")],
            &[("before", "yesterday")],
            &[("since", a), ("before", a)],
            &[("since", a), ("sincenow", "1")],
            &[("before", a), ("days", "1")],
            &[("days", "0")],
            &[("days", "-3")],
            &[("days", "9223372036854775807")],
            &[("sincenow", "soon")],
            &[("count", "0")],
            &[("count", "101")],
            &[("count", "ten")],
            &[("start", "-1")],
            &[("start", "")],
            &[("format", "xml")],
        ];
        for case in cases {
            let error = parse(case).expect_err(&format!("{case:?}"));
            assert_eq!((error.status(), error.cserror()), (400, None), "{case:?}");
        }
    }

    #[test]
    fn unknown_parameters_are_ignored_and_the_last_of_a_name_counts() {
        let query = parse(&[("shape", "round"), ("count", "7"), ("count", "9")]).unwrap();
        assert_eq!((query.start, query.count), (0, 9));
        assert_eq!(parse(&[]).unwrap().count, 50);
    }

    #[test]
    fn only_known_fields_narrow_the_list() {
        let fields = |text| parse(&[("fields", text)]).unwrap().fields;
        assert_eq!(fields("Start, nonsense ,end"), Some(vec!["start", "end"]));
        assert_eq!(fields("x-lotus-apptype"), Some(vec!["x-lotus-appttype"]));
        assert_eq!(fields("nonsense"), None);
    }

    #[test]
    fn edges_of_the_calendar_do_not_overflow() {
        assert!(parse(&[("before", "0001-01-01T00:00:00Z")]).is_ok());
        assert!(parse(&[("since", "9999-12-31T23:59:59Z"), ("days", "36525")]).is_ok());
    }
}
