//! Any bytes as a calendar document in iCalendar: parsed, or rejected; never a panic.

pub(crate) fn run(data: &[u8]) {
    if let Ok(event) = groupware_calendar::parse_icalendar(data) {
        let _ = format!("{event:?}");
    }
}
