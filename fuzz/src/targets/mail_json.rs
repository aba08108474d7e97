//! Any bytes as a message in JSON: parsed, or rejected; never a panic.

pub(crate) fn run(data: &[u8]) {
    if let Ok(message) = groupware_mail::parse_outgoing(data) {
        let _ = message.recipients().count();
    }
}
