//! Any bytes as a calendar document in JSON: parsed, or refused; never a panic.

pub(crate) fn run(data: &[u8]) {
    if let Ok(event) = groupware_calendar::parse_json_events(data) {
        // What was taken can be told again.
        let _ = format!("{event:?}");
    }
}
