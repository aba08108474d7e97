//! Expands a recurrence rule (RFC 5545 §3.3.10) to the wall clocks of an event's starts within a range.
//!
//! Own code, because calcard expands to a number of instances instead of a range. A rule without any match keeps it
//! busy without a bound, and one that matches each second of a year takes gigabytes. It also compares UNTIL, which is
//! in UTC, with a wall clock. Tests compare both implementations where neither matters. *Absent: zones, exceptions,
//! overrides.*

use std::ops::Range;

use calcard::icalendar::{
    ICalendarFrequency as Frequency, ICalendarRecurrenceRule as Rule, ICalendarWeekday,
};
use jiff::civil::{Date, DateTime, Time, Weekday};
use jiff::{SignedDuration, Span};

/// The maximum number of days or hours to check for a rule: a century of days.
const LOOKED_AT: i64 = 40_000;
/// The maximum number of starts of a rule: one a day for half a century.
const MOST: usize = 20_000;
/// The maximum number of times in a day.
const TIMES: usize = 24;
/// The maximum count of numbers in all lists of a rule.
const NUMBERS: usize = 1_000;

/// The expansion of a rule.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Starts {
    /// The starts, in order.
    pub at: Vec<DateTime>,
    /// True if there are more in the range.
    pub is_cut: bool,
}

/// The starts of an event whose first start is `first`, up to the range's end and none after `until`; some may be
/// before the range. `None` for rules that are not supported: by minutes and seconds, with more than 24 times a day, or
/// of a calendar other than the Gregorian.
pub fn starts(
    rule: &Rule,
    first: DateTime,
    until: Option<DateTime>,
    range: &Range<DateTime>,
) -> Option<Starts> {
    let filter = Filter::new(rule, first)?;
    let mut periods = Periods::new(rule, first, range.start)?;
    let mut left = rule.count.unwrap_or(u32::MAX);
    let (mut starts, mut looked_at) = (Starts::default(), 0);
    let end = until.map_or(range.end, |until| until.min(range.end));
    'periods: while let Some(period) = periods.next() {
        if period.first() > end {
            break;
        }
        looked_at += period.steps();
        starts.is_cut = looked_at > LOOKED_AT || starts.at.len() >= MOST;
        if starts.is_cut {
            break;
        }
        for at in filter.of(&period) {
            if at < first {
                continue;
            }
            let is_over = at >= range.end || until.is_some_and(|until| at > until);
            if is_over || left == 0 {
                break 'periods;
            }
            left -= 1;
            starts.at.push(at);
        }
    }
    starts.at.truncate(MOST);
    Some(starts)
}

/// A year, month, week, day, or hour: the rule's unit of counting, within which positions count.
enum Period {
    Days(Date, i64),
    Hour(DateTime),
}

impl Period {
    fn first(&self) -> DateTime {
        match self {
            Self::Days(date, _) => date.to_datetime(Time::midnight()),
            Self::Hour(hour) => *hour,
        }
    }

    fn steps(&self) -> i64 {
        match self {
            Self::Days(_, days) => *days,
            Self::Hour(_) => 1,
        }
    }
}

/// The periods of a rule in sequence.
struct Periods {
    frequency: Frequency,
    base: DateTime,
    every: i64,
    next: i64,
}

impl Periods {
    /// Starts with the first period or, without COUNT, shortly before the range.
    fn new(rule: &Rule, first: DateTime, from: DateTime) -> Option<Self> {
        let every = i64::from(rule.interval.unwrap_or(1));
        if every == 0 {
            return None;
        }
        let base = match rule.freq {
            Frequency::Weekly => {
                let begins = rule.wkst.map_or(0, monday_offset);
                let since = (7 + offset(first.weekday()) - begins) % 7;
                days_after(first.date(), -since)?.to_datetime(first.time())
            }
            _ => first,
        };
        let days = i64::from((from.date() - base.date()).get_days());
        let passed = match rule.freq {
            Frequency::Yearly => i64::from(from.year()) - i64::from(base.year()),
            Frequency::Monthly => months(from) - months(base),
            Frequency::Weekly => days / 7,
            Frequency::Daily => days,
            Frequency::Hourly => days * 24,
            Frequency::Minutely | Frequency::Secondly => return None,
        };
        let next = match rule.count {
            None => (passed / every - 2).max(0),
            Some(_) => 0,
        };
        let frequency = rule.freq;
        Some(Self {
            frequency,
            base,
            every,
            next,
        })
    }

    fn next(&mut self) -> Option<Period> {
        let by = self.next.checked_mul(self.every)?;
        self.next += 1;
        let base = self.base.date();
        Some(match self.frequency {
            Frequency::Yearly => {
                let year = i16::try_from(i64::from(base.year()) + by).ok()?;
                let date = Date::new(year, 1, 1).ok()?;
                Period::Days(date, i64::from(date.days_in_year()))
            }
            Frequency::Monthly => {
                let month = months(self.base) + by;
                let year = i16::try_from(month.div_euclid(12)).ok()?;
                let month = i8::try_from(month.rem_euclid(12) + 1).ok()?;
                let date = Date::new(year, month, 1).ok()?;
                Period::Days(date, i64::from(date.days_in_month()))
            }
            Frequency::Weekly => Period::Days(days_after(base, by.checked_mul(7)?)?, 7),
            Frequency::Daily => Period::Days(days_after(base, by)?, 1),
            Frequency::Hourly | Frequency::Minutely | Frequency::Secondly => {
                let hours = SignedDuration::from_secs(by.checked_mul(3600)?);
                Period::Hour(self.base.checked_add(hours).ok()?)
            }
        })
    }
}

/// Months since the year 0.
fn months(at: DateTime) -> i64 {
    i64::from(at.year()) * 12 + i64::from(at.month()) - 1
}

fn days_after(date: Date, days: i64) -> Option<Date> {
    date.checked_add(Span::new().try_days(days).ok()?).ok()
}

/// Days since Monday.
fn offset(day: Weekday) -> i64 {
    i64::from(day.to_monday_zero_offset())
}

fn monday_offset(day: ICalendarWeekday) -> i64 {
    match day {
        ICalendarWeekday::Monday => 0,
        ICalendarWeekday::Tuesday => 1,
        ICalendarWeekday::Wednesday => 2,
        ICalendarWeekday::Thursday => 3,
        ICalendarWeekday::Friday => 4,
        ICalendarWeekday::Saturday => 5,
        ICalendarWeekday::Sunday => 6,
    }
}

/// The days and times that a rule selects from its periods.
struct Filter<'a> {
    rule: &'a Rule,
    /// Days of the month; that of the first start if the rule has no days.
    month_days: Vec<i64>,
    /// Months; that of the first start, likewise.
    months: Vec<u8>,
    /// Days of the week with their number in the month or year, 0 for each.
    weekdays: Vec<(i64, i64)>,
    /// True if the numbers of weekdays count within the year.
    counts_in_year: bool,
    week_begins: i64,
    times: Vec<Time>,
}

impl<'a> Filter<'a> {
    fn new(rule: &'a Rule, first: DateTime) -> Option<Self> {
        let lists = [
            rule.bysecond.len(),
            rule.byminute.len(),
            rule.byhour.len(),
            rule.byday.len(),
            rule.bymonthday.len(),
            rule.byyearday.len(),
            rule.byweekno.len(),
            rule.bymonth.len(),
            rule.bysetpos.len(),
        ];
        let is_gregorian = rule.rscale.is_none() && !rule.bymonth.iter().any(|it| it.is_leap());
        if lists.iter().sum::<usize>() > NUMBERS || !is_gregorian {
            return None;
        }
        let mut months: Vec<u8> = rule.bymonth.iter().map(|month| month.month()).collect();
        let mut month_days: Vec<i64> = rule.bymonthday.iter().map(|it| i64::from(*it)).collect();
        let is_by_number = matches!(rule.freq, Frequency::Yearly | Frequency::Monthly);
        let number = |day: Option<i16>| match is_by_number {
            true => i64::from(day.unwrap_or(0)),
            false => 0,
        };
        let weekday =
            |it: &calcard::icalendar::ICalendarDay| (monday_offset(it.weekday), number(it.ordwk));
        let mut weekdays: Vec<(i64, i64)> = rule.byday.iter().map(weekday).collect();
        let says_days =
            !(month_days.is_empty() && weekdays.is_empty() && rule.byyearday.is_empty());
        match rule.freq {
            _ if says_days => {}
            Frequency::Yearly if !rule.byweekno.is_empty() => {
                weekdays.push((offset(first.weekday()), 0));
            }
            Frequency::Yearly | Frequency::Monthly => {
                if rule.freq == Frequency::Yearly && months.is_empty() {
                    months.push(u8::try_from(first.month()).unwrap_or(1));
                }
                month_days.push(i64::from(first.day()));
            }
            Frequency::Weekly => weekdays.push((offset(first.weekday()), 0)),
            _ => {}
        }
        Some(Self {
            rule,
            month_days,
            counts_in_year: rule.freq == Frequency::Yearly && rule.bymonth.is_empty(),
            months,
            weekdays,
            week_begins: rule.wkst.map_or(0, monday_offset),
            times: times(rule, first.time())?,
        })
    }

    /// The starts in a period, in order.
    fn of(&self, period: &Period) -> Vec<DateTime> {
        let mut all = Vec::new();
        match period {
            Period::Days(first, days) => {
                let mut day = Some(*first);
                for _ in 0..*days {
                    let Some(date) = day else { break };
                    if self.has(date) {
                        all.extend(self.times.iter().map(|time| date.to_datetime(*time)));
                    }
                    day = date.tomorrow().ok();
                }
            }
            Period::Hour(hour) => {
                let hours = &self.rule.byhour;
                let is_in = |it: &u8| i64::from(*it) == i64::from(hour.hour());
                if self.has(hour.date()) && (hours.is_empty() || hours.iter().any(is_in)) {
                    let at = |time: &Time| {
                        let time = time.with().hour(hour.hour()).build().unwrap_or(*time);
                        hour.date().to_datetime(time)
                    };
                    all.extend(self.times.iter().map(at));
                }
            }
        }
        match self.rule.bysetpos.is_empty() {
            true => all,
            false => self.positions(&all),
        }
    }

    fn positions(&self, all: &[DateTime]) -> Vec<DateTime> {
        let place = |position: &i32| {
            let position = i64::from(*position);
            let place = match position {
                ..0 => position + i64::try_from(all.len()).ok()?,
                _ => position - 1,
            };
            all.get(usize::try_from(place).ok()?).copied()
        };
        let mut picked: Vec<_> = self.rule.bysetpos.iter().filter_map(place).collect();
        picked.sort_unstable();
        picked.dedup();
        picked
    }

    fn has(&self, date: Date) -> bool {
        let day = Day::of(date);
        let month = u8::try_from(date.month()).unwrap_or_default();
        (self.months.is_empty() || self.months.contains(&month))
            && is_one(&self.month_days, day.in_month)
            && is_one_of(&self.rule.byyearday, day.in_year)
            && self.is_weekday(&day)
            && (self.rule.byweekno.is_empty()
                || is_one_of(&self.rule.byweekno, week(date, self.week_begins)))
    }

    fn is_weekday(&self, day: &Day) -> bool {
        let (at, of) = match self.counts_in_year {
            true => day.in_year,
            false => day.in_month,
        };
        let (from_start, from_end) = ((at - 1) / 7 + 1, -((of - at) / 7 + 1));
        self.weekdays.is_empty()
            || self.weekdays.iter().any(|(weekday, number)| {
                *weekday == day.weekday && [0, from_start, from_end].contains(number)
            })
    }
}

fn times(rule: &Rule, first: Time) -> Option<Vec<Time>> {
    let is_hourly = rule.freq == Frequency::Hourly;
    let or = |list: &[u8], first: i8| match list.is_empty() {
        true => vec![first],
        false => list
            .iter()
            .filter_map(|it| i8::try_from(*it).ok())
            .collect(),
    };
    let hours = match is_hourly {
        true => vec![0],
        false => or(&rule.byhour, first.hour()),
    };
    let (minutes, seconds) = (
        or(&rule.byminute, first.minute()),
        or(&rule.bysecond, first.second()),
    );
    if hours.len() * minutes.len() * seconds.len() > TIMES {
        return None;
    }
    let mut times = Vec::new();
    for hour in &hours {
        for minute in &minutes {
            // A leap second becomes the last second of its minute.
            let time = |second: &i8| Time::new(*hour, *minute, (*second).min(59), 0).ok();
            times.extend(seconds.iter().filter_map(time));
        }
    }
    times.sort_unstable();
    times.dedup();
    Some(times)
}

/// The position of a day: its number from 1, and the total.
struct Day {
    weekday: i64,
    in_month: (i64, i64),
    in_year: (i64, i64),
}

impl Day {
    fn of(date: Date) -> Self {
        Self {
            weekday: offset(date.weekday()),
            in_month: (i64::from(date.day()), i64::from(date.days_in_month())),
            in_year: (
                i64::from(date.day_of_year()),
                i64::from(date.days_in_year()),
            ),
        }
    }
}

/// Returns true if a list is empty or contains a number, counted from the start or, if negative, from the end.
fn is_one(list: &[i64], (at, of): (i64, i64)) -> bool {
    list.is_empty() || list.contains(&at) || list.contains(&(at - of - 1))
}

fn is_one_of<T: Copy + Into<i64>>(list: &[T], at: (i64, i64)) -> bool {
    list.is_empty() || list.iter().any(|it| is_one(&[(*it).into()], at))
}

/// The number of a day's week in its year, and the number of weeks of that year. The first week is the first with four
/// days in the year (RFC 5545 §3.3.10; ISO 8601 if weeks begin on Monday).
fn week(date: Date, begins: i64) -> (i64, i64) {
    let middle = |date: Date| {
        let since = (7 + offset(date.weekday()) - begins) % 7;
        days_after(date, 3 - since).unwrap_or(date)
    };
    let number = |middle: Date| (i64::from(middle.day_of_year()) - 1) / 7 + 1;
    let mid = middle(date);
    // 28 December is always in the last week of its year.
    let last = Date::new(mid.year(), 12, 28).map_or(mid, middle);
    (number(mid), number(last))
}

#[cfg(test)]
mod tests {
    use calcard::common::timezone::Tz;
    use calcard::icalendar::{ICalendarProperty, ICalendarValue};
    use calcard::{Entry, Parser};
    use proptest::prelude::*;

    use super::*;
    use crate::time;

    fn object(start: &str, rule: &str) -> calcard::icalendar::ICalendar {
        let text = format!(
            "BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:x\nDTSTART:{start}\nRRULE:{rule}\nEND:VEVENT\n\
             END:VCALENDAR\n"
        );
        match Parser::new(&text).entry() {
            Entry::ICalendar(calendar) => calendar,
            other => panic!("{other:?}"),
        }
    }

    fn rule(text: &str) -> Rule {
        let calendar = object("20200101T000000", text);
        let entry = calendar.components[1].property(&ICalendarProperty::Rrule);
        match &entry.unwrap().values[0] {
            ICalendarValue::RecurrenceRule(rule) => (**rule).clone(),
            other => panic!("{text}: {other:?}"),
        }
    }

    fn at(text: &str) -> DateTime {
        text.parse().unwrap()
    }

    fn found(text: &str, first: &str, range: [&str; 2]) -> Vec<String> {
        let found = starts(&rule(text), at(first), None, &(at(range[0])..at(range[1])));
        let found = found.unwrap();
        assert!(!found.is_cut);
        found.at.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn examples_of_the_standard() {
        let year = ["1997-01-01T00:00", "1998-12-31T00:00"];
        let days = |text: &str, first: &str| -> Vec<String> {
            let found = found(text, first, year);
            found.iter().map(|it| it[5..10].to_owned()).collect()
        };
        let cases: [(&str, &str, &[&str]); 6] = [
            (
                "FREQ=MONTHLY;COUNT=4;BYDAY=1FR",
                "1997-09-05T09:00",
                &["09-05", "10-03", "11-07", "12-05"],
            ),
            (
                "FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=SU",
                "1997-08-05T09:00",
                &["08-05", "08-17", "08-19", "08-31"],
            ),
            (
                "FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=MO",
                "1997-08-05T09:00",
                &["08-05", "08-10", "08-19", "08-24"],
            ),
            (
                "FREQ=MONTHLY;COUNT=3;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-2",
                "1997-09-29T09:00",
                &["09-29", "10-30", "11-27"],
            ),
            (
                "FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO",
                "1997-05-12T09:00",
                &["05-12", "05-11"],
            ),
            (
                "FREQ=YEARLY;COUNT=3;BYYEARDAY=1,100,200",
                "1997-01-01T09:00",
                &["01-01", "04-10", "07-19"],
            ),
        ];
        for (text, first, expected) in cases {
            assert_eq!(days(text, first), expected, "{text}");
        }
    }

    #[test]
    fn a_range_far_from_the_beginning_is_reached_at_once() {
        let range = ["2026-01-01T00:00", "2026-01-22T00:00"];
        let found = found("FREQ=WEEKLY;INTERVAL=3", "1900-01-01T08:00", range);
        let inside: Vec<_> = found.iter().filter(|it| &***it >= range[0]).collect();
        assert_eq!(inside, ["2026-01-12T08:00:00"]);
    }

    #[test]
    fn what_is_not_followed_is_known() {
        let range = at("2026-01-01T00:00")..at("2027-01-01T00:00");
        for text in ["FREQ=SECONDLY", "FREQ=MINUTELY;INTERVAL=30"] {
            assert_eq!(
                starts(&rule(text), range.start, None, &range),
                None,
                "{text}"
            );
        }
        let hits_nothing = rule("FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30;COUNT=2");
        let early = at("1600-01-01T00:00");
        assert!(starts(&hits_nothing, early, None, &range).unwrap().is_cut);
    }

    /// The number of instances of a rule to compare.
    const COMPARED: usize = 100;

    fn any_rule() -> impl Strategy<Value = String> {
        let days = "(MO|TU|WE|TH|FR|SA|SU)(,(MO|WE|SU))?";
        let part = |name: &'static str, values: &'static str| {
            let value = proptest::string::string_regex(values).unwrap();
            proptest::option::weighted(0.4, value.prop_map(move |it| format!(";{name}={it}")))
        };
        let freely = (
            prop::sample::select(vec!["DAILY", "WEEKLY", "MONTHLY", "YEARLY"]),
            part("INTERVAL", "[1-4]"),
            part("BYMONTH", "([1-9]|1[0-2])(,(2|11))?"),
            part("BYDAY", days),
            part("BYMONTHDAY", "([1-9]|2[0-9]|-1|-5)(,15)?"),
            part("COUNT", "[1-9][0-9]?"),
            part("WKST", "(SU|MO|WE)"),
        );
        let all = (
            freely,
            part("BYHOUR", "[0-9](,1[0-9])?"),
            part("BYSETPOS", "(1|2|-1)"),
        );
        all.prop_map(
            |((freq, interval, month, day, mday, count, wkst), hour, position)| {
                // BYMONTHDAY is invalid in weekly rules (RFC 5545 §3.3.10), and BYSETPOS needs another part.
                let mday = mday.filter(|_| freq != "WEEKLY");
                let position = position.filter(|_| day.is_some() && freq != "WEEKLY");
                let parts = [interval, month, day, mday, count, wkst, hour, position];
                format!(
                    "FREQ={freq}{}",
                    parts.into_iter().flatten().collect::<String>()
                )
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(700))]

        #[test]
        fn rules_come_to_what_calcard_makes_of_them(
            text in any_rule(), day in 1i8..29, month in 1i8..13, hour in 0i8..24
        ) {
            let first = DateTime::constant(2024, month, day, hour, 30, 0, 0);
            let end = at("2026-06-01T00:00");
            let compact = time::compact(time::seconds(first));
            let calendar = object(compact.trim_end_matches('Z'), &text);
            let expanded = calendar.expand_dates(Tz::Floating, COMPARED);
            prop_assert!(expanded.errors.is_empty(), "{:?}", expanded.errors);
            let seconds = expanded.events.iter().map(|event| event.timestamps().0);
            let mut expected: Vec<_> = seconds.map(time::utc).filter(|at| *at < end).collect();
            expected.sort();
            let mut found = starts(&rule(&text), first, None, &(first..end)).unwrap();
            prop_assert!(!found.is_cut);
            found.at.truncate(COMPARED);
            prop_assert_eq!(found.at, expected, "{}", text);
        }
    }
}
