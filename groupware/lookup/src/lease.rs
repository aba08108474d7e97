//! The lease of a registration.

use jiff::{Span, Timestamp, Unit};

use crate::limits::{DEFAULT_LEASE_S, MAX_LEASE_S, MIN_LEASE_S, RENEWABLE_S};
use crate::{LookupError, Reason};

/// A granted lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// Its length in seconds.
    pub ttl_s: i64,
    /// Its end, in seconds since 1970.
    pub expires: i64,
}

impl Lease {
    /// Grants a lease from `now` on. A length that is too short, too long, or missing is replaced
    /// by the default, as in the simple lookup service.
    pub fn grant(asked_s: Option<i64>, now: i64) -> Self {
        let ttl_s = asked_s
            .filter(|asked| (MIN_LEASE_S..=MAX_LEASE_S).contains(asked))
            .unwrap_or(DEFAULT_LEASE_S);
        Self {
            ttl_s,
            expires: now.saturating_add(ttl_s),
        }
    }

    /// Returns true if the registration is still visible.
    pub fn is_valid(self, now: i64) -> bool {
        now < self.expires
    }

    /// Returns true if the lease may be renewed.
    pub fn is_renewable(self, now: i64) -> bool {
        now <= self.expires.saturating_add(RENEWABLE_S)
    }

    /// The length in a record's form.
    pub(crate) fn ttl_text(self) -> String {
        format!("PT{}S", self.ttl_s)
    }

    /// The end in a record's form.
    pub(crate) fn expires_text(self) -> String {
        Timestamp::from_second(self.expires).map_or_else(
            |_| String::new(),
            |end| end.strftime("%Y-%m-%dT%H:%M:%S.000Z").to_string(),
        )
    }
}

/// Parses the requested seconds of an ISO 8601 period, such as `PT10M`; `None` for the empty text.
///
/// # Errors
/// For another form, and for months and years, which have no fixed length.
pub(crate) fn asked_s(text: &str) -> Result<Option<i64>, LookupError> {
    if text.is_empty() {
        return Ok(None);
    }
    let wrong = || {
        let message = "Failed to secure lease: ttl is a period such as PT2H or P1D.";
        LookupError::refused(Reason::Lease, message)
    };
    if text.len() > 64 {
        return Err(wrong());
    }
    let span: Span = text.parse().map_err(|_| wrong())?;
    if span.get_years() != 0 || span.get_months() != 0 {
        return Err(wrong());
    }
    // Weeks and days have a fixed length, as in the simple lookup service, without a calendar.
    let days = i64::from(span.get_weeks()) * 7 + i64::from(span.get_days());
    let rest = span
        .weeks(0)
        .days(0)
        .total(Unit::Second)
        .map_err(|_| wrong())?;
    // Values that overflow are out of bounds anyway.
    Ok(Some(
        (days.saturating_mul(86_400)).saturating_add(rest as i64),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_seconds() {
        let check = |text: &str, expected| assert_eq!(asked_s(text).ok(), expected, "{text}");
        check("", Some(None));
        check("PT10M", Some(Some(600)));
        check("P1DT1S", Some(Some(86_401)));
        check("P2W", Some(Some(14 * 86_400)));
        check("-PT5M", Some(Some(-300)));
        check("P1M", None);
        check("P1Y", None);
        check("600", None);
        check("soon", None);
        check(&"P".repeat(1000), None);
    }

    #[test]
    fn leases_are_bounded() {
        let ttl = |asked| Lease::grant(asked, 1000).ttl_s;
        assert_eq!(ttl(None), DEFAULT_LEASE_S);
        assert_eq!(ttl(Some(MIN_LEASE_S)), MIN_LEASE_S);
        assert_eq!(ttl(Some(MAX_LEASE_S)), MAX_LEASE_S);
        for out in [MIN_LEASE_S - 1, MAX_LEASE_S + 1, 0, -1, i64::MIN, i64::MAX] {
            assert_eq!(ttl(Some(out)), DEFAULT_LEASE_S, "{out}");
        }
        let lease = Lease::grant(Some(60), 1000);
        assert!(lease.is_valid(1059) && !lease.is_valid(1060));
        assert!(lease.is_renewable(1360) && !lease.is_renewable(1361));
        assert_eq!(lease.expires_text(), "1970-01-01T00:17:40.000Z");
    }
}
