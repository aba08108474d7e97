//! The `Range` header: the requested bytes of an attachment (RFC 9110, 14).

/// A range of existing content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteRange {
    /// The first byte, from 0.
    pub first: u64,
    /// The last byte; never before the first.
    pub last: u64,
}

impl ByteRange {
    /// The number of bytes.
    pub fn length(&self) -> u64 {
        self.last - self.first + 1
    }
}

/// The result of a `Range` header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ranged {
    /// The whole content, also for several ranges, another unit, or no range, as the standard
    /// permits.
    All,
    /// This part.
    Part(ByteRange),
    /// None of the requested bytes exist.
    Unsatisfiable,
}

impl Ranged {
    /// Parses the header for content of so many bytes.
    pub fn parse(header: &str, bytes: u64) -> Self {
        let Some(spec) = header.trim().strip_prefix("bytes=") else {
            return Self::All;
        };
        let Some((first, last)) = spec.split_once('-') else {
            return Self::All;
        };
        let end = bytes.checked_sub(1);
        match (number(first.trim()), number(last.trim())) {
            (Some(Ok(first)), None) => Self::between(first, end, end),
            (Some(Ok(first)), Some(Ok(last))) if first <= last => {
                Self::between(first, Some(last), end)
            }
            (None, Some(Ok(count))) if count > 0 => {
                Self::between(bytes.saturating_sub(count), end, end)
            }
            (None, Some(Ok(_))) => Self::Unsatisfiable,
            _ => Self::All,
        }
    }

    fn between(first: u64, last: Option<u64>, end: Option<u64>) -> Self {
        match (last, end) {
            (Some(last), Some(end)) if first <= end => Self::Part(ByteRange {
                first,
                last: last.min(end),
            }),
            _ => Self::Unsatisfiable,
        }
    }
}

/// `None` for an empty text, an error for no number. A number too large for any content counts as
/// the largest.
fn number(text: &str) -> Option<Result<u64, ()>> {
    if text.is_empty() {
        return None;
    }
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(Err(()));
    }
    Some(Ok(text.parse().unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges() {
        let part = |first, last| Ranged::Part(ByteRange { first, last });
        let check = |header: &str, expected| {
            assert_eq!(Ranged::parse(header, 100), expected, "{header}");
        };
        check("bytes=0-9", part(0, 9));
        check("bytes=90-", part(90, 99));
        check("bytes=-10", part(90, 99));
        check("bytes=-1000", part(0, 99));
        check("bytes=99-1000", part(99, 99));
        check("bytes=0-99999999999999999999999", part(0, 99));
        check("bytes=100-", Ranged::Unsatisfiable);
        check("bytes=99999999999999999999999-", Ranged::Unsatisfiable);
        check("bytes=-0", Ranged::Unsatisfiable);
        for all in [
            "bytes=5-4",
            "bytes=0-1,5-6",
            "bytes=a-b",
            "bytes=-",
            "bytes=--5",
            "items=0-1",
            "",
        ] {
            check(all, Ranged::All);
        }
        assert_eq!(Ranged::parse("bytes=0-0", 0), Ranged::Unsatisfiable);
        assert_eq!(Ranged::parse("bytes=-5", 0), Ranged::Unsatisfiable);
    }

    proptest! {
        #[test]
        fn parts_lie_within(header in "bytes=[0-9]{0,20}-[0-9]{0,20}", bytes: u64) {
            if let Ranged::Part(part) = Ranged::parse(&header, bytes) {
                prop_assert!(part.first <= part.last && part.last < bytes);
            }
        }

        #[test]
        fn no_header_panics(header: String, bytes: u64) {
            let _ = Ranged::parse(&header, bytes);
        }
    }
}
