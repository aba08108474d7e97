//! Dates in HTTP headers, as seconds since 1970.

use jiff::Timestamp;
use jiff::fmt::rfc2822::{DateTimeParser, DateTimePrinter};

/// Formats a date for a header: `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110, 5.6.7).
pub fn http_date(seconds: i64) -> String {
    let moment = Timestamp::from_second(seconds).unwrap_or_default();
    DateTimePrinter::new()
        .timestamp_to_rfc9110_string(&moment)
        .unwrap_or_default()
}

/// Parses an HTTP date in its current form; the two obsolete forms are rejected.
pub fn parse_http_date(text: &str) -> Option<i64> {
    if text.len() > 64 {
        return None;
    }
    let moment = DateTimeParser::new().parse_timestamp(text.trim()).ok()?;
    Some(moment.as_second())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn dates_have_their_form() {
        assert_eq!(http_date(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(
            parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT"),
            Some(784_111_777)
        );
        for bad in ["", "yesterday", "784111777", "Sun, 06 Nov 1994"] {
            assert_eq!(parse_http_date(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn dates_come_back(seconds in 0_i64..200_000_000_000) {
            prop_assert_eq!(parse_http_date(&http_date(seconds)), Some(seconds));
        }

        #[test]
        fn no_text_panics(text: String) {
            let _ = parse_http_date(&text);
        }
    }
}
