//! Notes for the user on content of an imported object that is shown differently.

use calcard::common::IanaString;
use calcard::icalendar::{
    ICalendarComponent, ICalendarEntry, ICalendarFrequency as Frequency,
    ICalendarProperty as Property, ICalendarRecurrenceRule as Rule, ICalendarValue,
};
use groupware_text::shortened;

use super::occurrences::{RULES, rules};
use super::view::{Series, local};
use crate::{Moment, time};

/// How far after its start to look for any date of a rule: leap days have the same weekday every 28 years, or 40 across
/// a century without a leap day.
const LOOKED_AHEAD_S: i64 = 41 * 366 * 86_400;

impl Series<'_> {
    /// The notes, most important first. `is_cut`: some instances were omitted.
    pub(crate) fn notes(&self, is_cut: bool) -> Vec<String> {
        let mut notes = Vec::new();
        let versions = self.masters().count();
        if versions > 1 {
            notes.push(format!(
                "it is there in {versions} versions: the newest, by SEQUENCE and DTSTAMP, is shown"
            ));
        }
        if let Some((main, (start, _))) = self.recurring() {
            self.add_rules(main, &start, is_cut, &mut notes);
            self.add_dates_that_cannot_be_read(main, &mut notes);
        }
        if let Some(zone) = self.unknown_zone() {
            let zone = shortened(zone);
            notes.push(format!(
                "nobody knows its time zone {zone}: it is shown at the same clock time everywhere"
            ));
        }
        notes
    }

    fn add_rules(
        &self,
        main: &ICalendarComponent,
        start: &Moment,
        is_cut: bool,
        notes: &mut Vec<String>,
    ) {
        let unread = main.properties(&Property::Rrule).filter_map(unread);
        let known = notes.len();
        notes.extend(unread.map(|rule| {
            format!(
                "its rule can't be read, and is not followed: RRULE:{}",
                shortened(&rule)
            )
        }));
        let (mut gives, mut gives_first) = (false, false);
        let first = local(start);
        let after = first..time::utc(time::seconds(first).saturating_add(LOOKED_AHEAD_S));
        let followed = rules(main).take(RULES);
        let mut count = 0;
        for rule in followed {
            match self.starts(rule, start, &after) {
                None => notes.push(why_not_followed(rule)),
                Some(found) => {
                    count += 1;
                    gives |= !found.at.is_empty() || found.is_cut;
                    gives_first |= found.at.first() == Some(&first);
                }
            }
        }
        if rules(main).count() > RULES {
            notes.push(format!(
                "it has more than {RULES} rules: the first {RULES} are followed"
            ));
        }
        if notes.len() == known && is_cut {
            notes.push("it recurs too often for all its instances to be shown".to_owned());
        }
        let is_out = self.is_all_left_out();
        if is_out {
            notes.push("all its dates are left out by its EXDATE: no list shows it".to_owned());
        } else if count > 0 && !gives {
            notes.push("its rule gives no date: the day on which it begins is shown".to_owned());
        } else if count > 0 && !gives_first && self.is_first_shown(start) {
            notes.push(
                "it begins on a day that its rule doesn't give: it is shown on that day, too"
                    .to_owned(),
            );
        }
    }

    fn is_first_shown(&self, start: &Moment) -> bool {
        let at = start.instant();
        let (spans, _) = self.spans(&(at..at.saturating_add(1)), usize::MAX);
        spans.iter().any(|span| span.id == at)
    }

    /// Returns true if EXDATE excludes all instances.
    fn is_all_left_out(&self) -> bool {
        let Some((main, (start, _))) = self.recurring() else {
            return false;
        };
        let at = start.instant();
        main.has_property(&Property::Exdate)
            && self
                .spans(&(i64::MIN..at.saturating_add(LOOKED_AHEAD_S)), usize::MAX)
                .0
                .is_empty()
    }

    fn add_dates_that_cannot_be_read(&self, main: &ICalendarComponent, notes: &mut Vec<String>) {
        for property in [Property::Exdate, Property::Rdate] {
            let is_read = |entry: &ICalendarEntry| {
                let mut values = entry.values.iter();
                values.all(|value| match value.as_partial_date_time() {
                    Some(at) => self.value(entry, at).is_some(),
                    None => matches!(value, ICalendarValue::Period(_)),
                })
            };
            if !main.properties(&property).all(is_read) {
                let name = property.as_str();
                notes.push(format!(
                    "its {name} has what is no date, which is passed over"
                ));
            }
        }
    }
}

/// The text of a rule that can't be read.
fn unread(entry: &ICalendarEntry) -> Option<String> {
    if let Some(ICalendarValue::RecurrenceRule(_)) = entry.values.first() {
        return None;
    }
    let parts = entry.values.iter().filter_map(ICalendarValue::as_text);
    Some(parts.collect::<Vec<_>>().join(";"))
}

fn why_not_followed(rule: &Rule) -> String {
    let by = match (&rule.rscale, rule.freq) {
        (Some(scale), _) => format!("in another calendar than ours (RSCALE={})", scale.as_str()),
        (None, Frequency::Minutely) => "by the minute".to_owned(),
        (None, Frequency::Secondly) => "by the second".to_owned(),
        (None, _) if rule.bymonth.iter().any(|month| month.is_leap()) => {
            "by leap months, which our calendar doesn't have".to_owned()
        }
        (None, _) => "too often".to_owned(),
    };
    format!("it recurs {by}, which is not followed: the day on which it begins is shown")
}
