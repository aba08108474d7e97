//! Any bytes over SMTP: a line is a command or none; the text has no bare line ends, whatever the split.

use groupware_proto_smtp::{Text, command as smtp_command};

pub(crate) fn run(data: &[u8]) {
    let _ = smtp_command(data);
    let mut whole = Text::new(1 << 16);
    let (taken, is_end) = whole.feed(data);
    let mut cut = Text::new(1 << 16);
    let mut fed = 0;
    for byte in data.chunks(1) {
        let (more, end) = cut.feed(byte);
        fed += more;
        if end {
            break;
        }
    }
    assert_eq!(fed, taken);
    let (whole, cut) = (whole.finish(), cut.finish());
    assert_eq!(whole, cut);
    if let (Ok(text), true) = (whole, is_end) {
        let bare = String::from_utf8_lossy(&text).replace("\r\n", "");
        assert!(!bare.contains(['\r', '\n']));
    }
}
