//! Times in JSON. Internally seconds since 1970.

use jiff::Timestamp;

/// Formats a time for JSON: `2026-01-05T09:00:00Z`.
pub(crate) fn json_date(seconds: i64) -> String {
    Timestamp::from_second(seconds)
        .unwrap_or_default()
        .to_string()
}

/// Parses a time in a query: `2026-01-05T09:00:00Z`, or with another offset.
pub(crate) fn parse_date(text: &str) -> Option<i64> {
    if text.len() > 64 {
        return None;
    }
    let moment: Timestamp = text.parse().ok()?;
    Some(moment.as_second())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn dates_have_their_form() {
        assert_eq!(json_date(784_111_777), "1994-11-06T08:49:37Z");
        assert_eq!(parse_date("1994-11-06T09:49:37+01:00"), Some(784_111_777));
        for bad in ["", "yesterday", "784111777", "1994-11-06"] {
            assert_eq!(parse_date(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn dates_come_back(seconds in 0_i64..200_000_000_000) {
            prop_assert_eq!(parse_date(&json_date(seconds)), Some(seconds));
        }

        #[test]
        fn no_text_panics(text: String) {
            let _ = parse_date(&text);
        }
    }
}
