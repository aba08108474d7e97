//! Instances of a series that were imported without the series, at different times: they form one object on the
//! calendar, with the newest version of each.

use std::collections::BTreeMap;

use calcard::icalendar::ICalendar;
use groupware_proto_ical::split;

use crate::imported::view::{self, Series};
use crate::limits;

/// The reason why single instances can't join others of the same series.
pub(super) const APART: &str = "other instances of its series are there, and these can't be put beside them: import a file \
                     with the whole series, or with all of its instances";

/// Merges the instances of both objects: stored instances stay unless there is a newer version.
///
/// # Errors
/// The reason why they can't be one object.
pub(super) fn together((there, comes): (&str, &str), uid: &str) -> Result<String, &'static str> {
    // The stored object has whole lines; the last line of a file may lack its end.
    let both = format!("{there}\r\n{comes}");
    let (mut objects, faults) = split(both.as_bytes()).map_err(|_| APART)?;
    let mut object = match objects.pop() {
        Some(object) if objects.is_empty() && faults.is_empty() && object.uid == uid => object,
        _ => return Err(APART),
    };
    let mut written = Vec::new();
    object.write(&mut written);
    let text = std::str::from_utf8(&written).map_err(|_| APART)?;
    let calendar = view::parse(text).map_err(|_| APART)?;
    let newest = newest(&calendar).filter(|newest| newest.of == object.components().count());
    let newest = newest.ok_or(APART)?;
    if newest.stay.len() == newest.of && written.len() <= limits::OBJECT_BYTES {
        return Ok(text.to_owned());
    }
    object.retain(|number| newest.stay.contains(&number));
    let mut text = Vec::with_capacity(object.written_bytes());
    object.write(&mut text);
    match text.len() <= limits::OBJECT_BYTES {
        true => String::from_utf8(text).map_err(|_| APART),
        false => Err(APART),
    }
}

/// The components of an object to keep.
struct Newest {
    /// Their numbers, without time zones.
    stay: Vec<usize>,
    /// The total number of components.
    of: usize,
}

/// The newest component of each instance; `None` if a component is not an instance.
fn newest(calendar: &ICalendar) -> Option<Newest> {
    let series = Series::of(calendar);
    let (mut newest, mut of) = (BTreeMap::new(), 0);
    for (number, component) in view::numbered(calendar) {
        let instance = series.instance(component)?;
        let version = series.version_of(component);
        let known = newest.entry(instance).or_insert((version, number));
        if version > known.0 {
            *known = (version, number);
        }
        of = number + 1;
    }
    let stay = newest.into_values().map(|(_, number)| number).collect();
    Some(Newest { stay, of })
}
