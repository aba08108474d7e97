//! Any bytes as a calendar document in JSON: parsed, or rejected; never a panic.

pub(crate) fn run(data: &[u8]) {
    if let Ok(event) = groupware_calendar::parse_json_events(data) {
        // An accepted event can be formatted.
        let _ = format!("{event:?}");
    }
}
