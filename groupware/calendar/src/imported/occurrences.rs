//! Expands a series to occurrences: the results of its rules and dates, without excluded ones, and with moved ones.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use calcard::common::PartialDateTime;
use calcard::icalendar::{
    ICalendarComponent, ICalendarDuration, ICalendarPeriod, ICalendarProperty as Property,
    ICalendarRecurrenceRule as Rule, ICalendarValue,
};
use groupware_recurrence::rules as recurrence;
use jiff::Span as Duration;
use jiff::civil::{Date, DateTime, Time};

use super::view::{Series, Times, local};
use crate::object::Occurrence;
use crate::{Moment, limits, time, values};

/// The maximum number of rules of one event that are expanded. RFC 5545 advises no more than one.
pub(super) const RULES: usize = 4;
/// How far back to list a series with too many instances.
const LOOKED_BACK_S: i64 = 31 * 86_400;

/// Instances by their recurrence moment: the start and end of each.
type Instances = BTreeMap<i64, (i64, i64)>;

/// The start of the first instance, and the duration of each.
struct Pattern {
    start: Moment,
    lasts: Lasts,
}

enum Lasts {
    /// An exact number of seconds.
    Exactly(i64),
    /// Calendar days and exact times.
    By(Duration),
}

impl<'a> Series<'a> {
    /// The occurrences in a range, in the order of their starts, and whether some were omitted.
    pub(crate) fn spans(&self, range: &Range<i64>, most: usize) -> (Vec<Occurrence>, bool) {
        let mut all = Instances::new();
        let mut is_cut = false;
        if let Some((main, times)) = self.recurring() {
            is_cut = self.follow(main, &times, range, &mut all);
            self.move_later_ones(&mut all);
        }
        for (id, component) in &self.overrides {
            if let Some((start, end)) = self.times(component) {
                all.insert(*id, (start.instant(), end.instant()));
            }
        }
        let is_in = |(start, end): &(i64, i64)| *start < range.end && *end >= range.start;
        let spans = all.into_iter().filter(|(_, times)| is_in(times));
        let mut spans: Vec<Occurrence> = spans
            .map(|(id, (start, end))| Occurrence { start, end, id })
            .collect();
        spans.sort_unstable();
        if spans.len() > most {
            is_cut = true;
            // Of too many, keep the recent ones, which people look at.
            let recent = range.start.saturating_add(limits::PAST_S - LOOKED_BACK_S);
            spans.retain(|span| span.end >= recent);
            spans.truncate(most);
        }
        (spans, is_cut)
    }

    pub(super) fn recurring(&self) -> Option<(&'a ICalendarComponent, Times)> {
        let (main, _) = self.master.as_ref()?;
        Some((main, self.times(main)?))
    }

    /// Adds the instances of a component's rules and dates; returns whether some were omitted.
    fn follow(
        &self,
        main: &ICalendarComponent,
        times: &Times,
        range: &Range<i64>,
        all: &mut Instances,
    ) -> bool {
        let pattern = self.pattern(main, times);
        // Wall clocks differ by at most a day from their instants, and some instances are moved.
        let slack = 86_400_i64.saturating_add(self.most_moved());
        let from = range.start.saturating_sub(slack);
        let around = time::utc(from.saturating_sub(length(times)))
            ..time::utc(range.end.saturating_add(slack));
        let mut is_cut = false;
        for rule in rules(main).take(RULES) {
            let Some(found) = self.starts(rule, &times.0, &around) else {
                is_cut = true;
                continue;
            };
            is_cut |= found.is_cut;
            let found = found.at.into_iter();
            let found = found.filter_map(|at| self.beginning_at(&pattern, at));
            all.extend(found.map(|times| (times.0, times)));
        }
        // The first instance always exists, also without a match of the rule, as in other calendars.
        let own = (times.0.instant(), times.1.instant());
        all.insert(own.0, own);
        self.add_dates(main, &pattern, all);
        self.leave_out(main, &times.0, all);
        is_cut
    }

    /// The wall clocks of a rule; `None` if it isn't supported.
    pub(super) fn starts(
        &self,
        rule: &Rule,
        first: &Moment,
        around: &Range<DateTime>,
    ) -> Option<recurrence::Starts> {
        let until = rule.until.as_ref();
        let until = until.and_then(|until| self.until(until, first));
        recurrence::starts(rule, local(first), until, around)
    }

    /// The wall clock after which a rule has no instance.
    fn until(&self, until: &PartialDateTime, start: &Moment) -> Option<DateTime> {
        let last_second = Time::constant(23, 59, 59, 0);
        Some(match self.zones.moment(until, None)?.ok()? {
            Moment::Day(date) => date.to_datetime(last_second),
            moment if start.is_day() => local(&moment).date().to_datetime(last_second),
            Moment::Utc(at) => local(&self.at_or(start, time::seconds(at))),
            moment => local(&moment),
        })
    }

    fn at_or(&self, moment: &Moment, second: i64) -> Moment {
        let at = self.zones.at(moment, second);
        at.unwrap_or_else(|| Moment::Utc(time::utc(second)))
    }

    /// The pattern shared by all instances of a component. With an end, each lasts exactly as long as the first (RFC
    /// 5545 §3.8.5.3); with a duration, calendar days and exact hours.
    fn pattern(&self, component: &ICalendarComponent, times: &Times) -> Pattern {
        let lasts = match self.said_end(component, &times.0) {
            Some(_) => None,
            None => Some(self.lasts(component, &times.0)),
        };
        Pattern {
            start: times.0.clone(),
            lasts: lasts.map_or_else(|| Lasts::Exactly(length(times)), Lasts::By),
        }
    }

    /// The times of an instance that starts at a wall clock.
    fn beginning_at(&self, pattern: &Pattern, clock: DateTime) -> Option<(i64, i64)> {
        let start = self.zones.with_local(&pattern.start, clock)?;
        let end = match pattern.lasts {
            Lasts::Exactly(seconds) => start.instant().saturating_add(seconds),
            Lasts::By(span) => self.zones.plus(&start, span)?.instant(),
        };
        Some((start.instant(), end.max(start.instant())))
    }

    /// Moves the instances after one that was moved together with all later ones: RFC 5545 §3.8.4.4.
    fn move_later_ones(&self, all: &mut Instances) {
        let Some((_, Some(first))) = &self.master else {
            return;
        };
        let moves = self.ranges.iter().filter_map(|(from, component)| {
            let times = self.times(component)?;
            let clock = |moment: &Moment| time::seconds(local(moment));
            let by = clock(&times.0).checked_sub(clock(&self.at_or(first, *from)))?;
            Some((*from, (self.pattern(component, &times), by)))
        });
        let moves: BTreeMap<i64, (Pattern, i64)> = moves.collect();
        for (id, instance) in all.iter_mut() {
            if let Some((_, (pattern, by))) = moves.range(..=*id).next_back() {
                let clock = time::seconds(local(&self.at_or(first, *id)));
                let moved = time::utc(clock.saturating_add(*by));
                *instance = self.beginning_at(pattern, moved).unwrap_or(*instance);
            }
        }
    }

    /// The maximum move of later instances, in seconds.
    fn most_moved(&self) -> i64 {
        let moved = self.ranges.iter().filter_map(|(id, component)| {
            let (start, _) = self.times(component)?;
            Some(start.instant().saturating_sub(*id).saturating_abs())
        });
        moved.max().unwrap_or(0)
    }

    fn add_dates(&self, main: &ICalendarComponent, pattern: &Pattern, all: &mut Instances) {
        for entry in main.properties(&Property::Rdate) {
            for value in &entry.values {
                let moment = |at| Some(self.as_in_series(self.value(entry, at)?));
                let (start, end) = match value {
                    ICalendarValue::PartialDateTime(at) => (moment(at), None),
                    ICalendarValue::Period(ICalendarPeriod::Range { start, end }) => {
                        (moment(start), moment(end))
                    }
                    ICalendarValue::Period(ICalendarPeriod::Duration { start, duration }) => {
                        let start = moment(start);
                        let end = start.as_ref().and_then(|it| self.later(it, duration));
                        (start, end)
                    }
                    _ => continue,
                };
                let Some(start) = start else { continue };
                let id = start.instant();
                let own = || {
                    // By the series' wall clock, whatever the zone of the date.
                    let start = self.zones.at(&pattern.start, id)?;
                    Some(self.beginning_at(pattern, local(&start))?.1)
                };
                let end = end.map(|end| end.instant()).or_else(own).unwrap_or(id);
                all.insert(id, (id, end.max(id)));
            }
        }
    }

    fn later(&self, start: &Moment, duration: &ICalendarDuration) -> Option<Moment> {
        self.zones.plus(start, values::span(duration)?)
    }

    /// Removes excluded moments and days.
    fn leave_out(&self, main: &ICalendarComponent, first: &Moment, all: &mut Instances) {
        let (mut moments, mut days) = (BTreeSet::new(), BTreeSet::<Date>::new());
        for entry in main.properties(&Property::Exdate) {
            for value in &entry.values {
                let at = value.as_partial_date_time();
                match at.and_then(|at| self.value(entry, at)) {
                    Some(Moment::Day(date)) => {
                        days.insert(date);
                    }
                    Some(moment) => {
                        moments.insert(self.as_in_series(moment).instant());
                    }
                    None => {}
                }
            }
        }
        let is_on = |id: i64| days.contains(&local(&self.at_or(first, id)).date());
        all.retain(|id, _| !moments.contains(id) && (days.is_empty() || !is_on(*id)));
    }
}

/// The readable rules of a component.
pub(super) fn rules(main: &ICalendarComponent) -> impl Iterator<Item = &Rule> {
    let all = main.properties(&Property::Rrule);
    all.filter_map(|entry| match entry.values.first() {
        Some(ICalendarValue::RecurrenceRule(rule)) => Some(&**rule),
        _ => None,
    })
}

/// The duration of an event, in seconds.
fn length((start, end): &Times) -> i64 {
    end.instant().saturating_sub(start.instant())
}
