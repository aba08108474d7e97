//! The authentication results of a received message: SPF, DKIM, and DMARC, written and parsed as
//! the field `Authentication-Results` (RFC 8601).
//!
//! Only the field that the server itself put on top counts: others with its name are removed from
//! incoming messages ([`crate::as_delivered`]).

use std::fmt::{self, Write};

use crate::head::{fields, head_bytes, is_called};

/// The field's name.
pub(crate) const FIELD: &str = "Authentication-Results";
/// Most signatures in a field.
const SIGNATURES: usize = 10;
/// Longest name of a domain, or of a key in it.
const NAME_BYTES: usize = 255;

/// The result of a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The method confirms the message.
    Pass,
    /// The method rejects the message.
    Fail,
    /// The method rejects the message, but its domain isn't certain.
    SoftFail,
    /// The method has no result.
    Neutral,
    /// The domain doesn't use it.
    None,
    /// The check failed temporarily.
    TempError,
    /// The domain's record, or the message, can't be parsed.
    PermError,
}

/// The outcomes by their names in RFC 8601, 2.7.
const OUTCOMES: [(&str, Outcome); 7] = [
    ("pass", Outcome::Pass),
    ("fail", Outcome::Fail),
    ("softfail", Outcome::SoftFail),
    ("neutral", Outcome::Neutral),
    ("none", Outcome::None),
    ("temperror", Outcome::TempError),
    ("permerror", Outcome::PermError),
];

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = OUTCOMES.iter().find(|(_, outcome)| outcome == self);
        f.write_str(named.map_or("none", |(name, _)| name))
    }
}

/// A method's result, and the domain that it concerns; empty if there is none, or none that can be
/// written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The result.
    pub outcome: Outcome,
    /// The domain.
    pub domain: String,
}

impl Finding {
    /// A result about a domain, which is omitted if it can't be written in a field.
    pub fn new(outcome: Outcome, domain: &str) -> Self {
        let domain = domain.to_ascii_lowercase();
        let domain = Some(domain).filter(|domain| is_name(domain));
        Self {
            outcome,
            domain: domain.unwrap_or_default(),
        }
    }
}

/// The authentication results of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Findings {
    /// Whether the envelope's sender may send from the client's address (SPF).
    pub spf: Finding,
    /// The signatures (DKIM).
    pub dkim: Vec<Finding>,
    /// Whether one of these confirms the domain in `From`, under its policy (DMARC).
    pub dmarc: Finding,
}

/// The conclusion for the reader of the message: whether it is from the domain in its `From`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The domain has signed it.
    Signed(String),
    /// A server that may send for the domain sent it.
    Sent(String),
    /// The domain has a policy that this message violates.
    Contradicted(String),
    /// No method confirms it; the domain has no policy.
    Unconfirmed(String),
    /// The check failed.
    Unknown(String),
}

impl Findings {
    /// Returns the field, by the server of this name, with its line end.
    pub fn field(&self, server: &str) -> String {
        let mut out = format!("{FIELD}: {server};");
        let mut method = |method: &str, found: &Finding, property: &str| {
            // Writing to memory can't fail.
            let _ = write!(out, "\r\n\t{method}={}", found.outcome);
            if !found.domain.is_empty() {
                let _ = write!(out, " {property}={}", found.domain);
            }
            out.push(';');
        };
        method("spf", &self.spf, "smtp.mailfrom");
        for signature in self.dkim.iter().take(SIGNATURES) {
            method("dkim", signature, "header.d");
        }
        method("dmarc", &self.dmarc, "header.from");
        out.pop();
        out + "\r\n"
    }

    /// Returns the results that the server of this name recorded on receipt: only fields above the
    /// first `Received` are its own.
    pub fn of(message: &[u8], server: &str) -> Option<Self> {
        let head = &message[..head_bytes(message)];
        let own = fields(head).take_while(|field| !is_called(field, "Received"));
        let mut own = own.filter(|field| is_called(field, FIELD));
        own.find_map(|field| Self::read(field, server))
    }

    fn read(field: &[u8], server: &str) -> Option<Self> {
        let text = std::str::from_utf8(field).ok()?;
        let (_, value) = text.split_once(':')?;
        let mut parts = value.split(';').map(str::trim);
        if !parts.next()?.eq_ignore_ascii_case(server) {
            return None;
        }
        let (mut spf, mut dkim, mut dmarc) = (None, Vec::new(), None);
        for part in parts {
            let (method, found) = method(part)?;
            match method {
                "spf" => spf = Some(found),
                "dkim" if dkim.len() < SIGNATURES => dkim.push(found),
                "dmarc" => dmarc = Some(found),
                _ => return None,
            }
        }
        Some(Self {
            spf: spf?,
            dkim,
            dmarc: dmarc?,
        })
    }

    /// Returns the conclusion; `None` if the message has no author.
    pub fn origin(&self) -> Option<Origin> {
        let from = self.dmarc.domain.clone();
        if from.is_empty() {
            return None;
        }
        let confirms =
            |found: &Finding| found.outcome == Outcome::Pass && is_over(&found.domain, &from);
        let is_signed = self.dkim.iter().any(confirms);
        Some(match self.dmarc.outcome {
            Outcome::Pass if self.is_signed_within(&from) => Origin::Signed(from),
            Outcome::Pass => Origin::Sent(from),
            Outcome::Fail => Origin::Contradicted(from),
            Outcome::TempError | Outcome::PermError => Origin::Unknown(from),
            // The result under a policy, if the domain had one.
            _ if is_signed => Origin::Signed(from),
            _ if confirms(&self.spf) => Origin::Sent(from),
            _ => Origin::Unconfirmed(from),
        })
    }

    /// Returns true if a domain above or below this one has signed it: DMARC has confirmed one of them.
    fn is_signed_within(&self, from: &str) -> bool {
        self.dkim.iter().any(|found| {
            found.outcome == Outcome::Pass
                && (is_over(&found.domain, from) || is_over(from, &found.domain))
        })
    }
}

/// Parses `spf=pass smtp.mailfrom=example.org`.
fn method(part: &str) -> Option<(&str, Finding)> {
    let mut words = part.split_ascii_whitespace();
    let (method, outcome) = words.next()?.split_once('=')?;
    let (_, outcome) = OUTCOMES.iter().find(|(name, _)| *name == outcome)?;
    let domain = match words.next() {
        Some(property) => property.split_once('=')?.1,
        None => "",
    };
    let found = Finding {
        outcome: *outcome,
        domain: domain.to_owned(),
    };
    Some((method, found)).filter(|_| words.next().is_none())
}

/// Returns true if a domain is this one, or contains it. A subdomain doesn't speak for its parent.
fn is_over(domain: &str, of: &str) -> bool {
    let rest = of.strip_suffix(domain).filter(|_| !domain.is_empty());
    rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

fn is_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=NAME_BYTES).contains(&text.len()) && text.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(spf: (Outcome, &str), dkim: &[(Outcome, &str)], dmarc: (Outcome, &str)) -> Findings {
        let finding = |(outcome, domain)| Finding::new(outcome, domain);
        Findings {
            spf: finding(spf),
            dkim: dkim.iter().copied().map(finding).collect(),
            dmarc: finding(dmarc),
        }
    }

    #[test]
    fn the_field_is_as_the_standard_has_it() {
        let findings = found(
            (Outcome::SoftFail, "Example.ORG"),
            &[(Outcome::Pass, "example.org"), (Outcome::Fail, "a b;c")],
            (Outcome::Pass, "example.org"),
        );
        assert_eq!(
            findings.field("here.example"),
            "Authentication-Results: here.example;\r\n\tspf=softfail smtp.mailfrom=example.org;\r\n\
             \tdkim=pass header.d=example.org;\r\n\tdkim=fail;\r\n\
             \tdmarc=pass header.from=example.org\r\n"
        );
    }

    #[test]
    fn only_what_this_server_put_on_top_counts() {
        let check = |head: &str, is_found: bool| {
            let message = format!("{head}\r\nbody");
            let read = Findings::of(message.as_bytes(), "here.example");
            assert_eq!(read.is_some(), is_found, "{head}");
        };
        let nothing = found((Outcome::None, ""), &[], (Outcome::None, ""));
        let (ours, theirs) = (
            nothing.field("here.example"),
            nothing.field("there.example"),
        );
        check(
            &format!("Return-Path: <a@b>\r\n{ours}Received: x\r\n"),
            true,
        );
        check(&format!("{theirs}{ours}Received: x\r\n"), true);
        check(&format!("Received: x\r\n{ours}"), false);
        check(&format!("{theirs}Received: x\r\n"), false);
        check(&ours.replace("dmarc=none", "dmarc=none x=y z=w"), false);
        check(&ours.replace("none", "perhaps"), false);
        check("Subject: x\r\n", false);
        check("", false);
    }

    #[test]
    fn who_confirms_what() {
        use Outcome::{Fail, Neutral, None, Pass, PermError, TempError};
        let check = |spf, dkim: &[_], dmarc: (Outcome, &str), expected: Option<Origin>| {
            assert_eq!(found(spf, dkim, dmarc).origin(), expected, "{dmarc:?}");
        };
        let (org, sub, io) = ("example.org", "mail.example.org", "example.io");
        let nothing = (None, "");
        check(
            nothing,
            &[(Pass, org)],
            (Pass, org),
            Some(Origin::Signed(org.into())),
        );
        check(
            nothing,
            &[(Pass, sub)],
            (Pass, org),
            Some(Origin::Signed(org.into())),
        );
        check(
            (Pass, org),
            &[(Pass, io)],
            (Pass, org),
            Some(Origin::Sent(org.into())),
        );
        check(
            (Pass, io),
            &[(Pass, io)],
            (Fail, org),
            Some(Origin::Contradicted(org.into())),
        );
        check(
            nothing,
            &[],
            (TempError, org),
            Some(Origin::Unknown(org.into())),
        );
        check(
            nothing,
            &[],
            (PermError, org),
            Some(Origin::Unknown(org.into())),
        );
        // Without a policy, a signature of the domain itself counts, and none of its subdomains.
        check(
            nothing,
            &[(Pass, org)],
            (None, org),
            Some(Origin::Signed(org.into())),
        );
        check(
            nothing,
            &[(Pass, org)],
            (None, sub),
            Some(Origin::Signed(sub.into())),
        );
        check(
            nothing,
            &[(Pass, sub)],
            (None, org),
            Some(Origin::Unconfirmed(org.into())),
        );
        check(
            nothing,
            &[(Fail, org)],
            (None, org),
            Some(Origin::Unconfirmed(org.into())),
        );
        check(
            nothing,
            &[(Pass, "ample.org")],
            (None, org),
            Some(Origin::Unconfirmed(org.into())),
        );
        check(
            (Pass, org),
            &[],
            (None, org),
            Some(Origin::Sent(org.into())),
        );
        check(
            (Neutral, org),
            &[],
            (None, org),
            Some(Origin::Unconfirmed(org.into())),
        );
        check((Pass, org), &[], (None, ""), Option::None);
    }

    fn any_finding() -> impl Strategy<Value = Finding> {
        let outcome = (0..OUTCOMES.len()).prop_map(|at| OUTCOMES[at].1);
        (outcome, "[a-zA-Z0-9.;= \r\n()-]{0,12}").prop_map(|(it, text)| Finding::new(it, &text))
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_as_it_was(
            spf in any_finding(),
            dkim in prop::collection::vec(any_finding(), 0..4),
            dmarc in any_finding(),
        ) {
            let findings = Findings { spf, dkim, dmarc };
            let field = findings.field("here.example");
            prop_assert_eq!(field.lines().filter(|line| !line.starts_with('\t')).count(), 1);
            let message = format!("{field}Received: x\r\n\r\n");
            prop_assert_eq!(Findings::of(message.as_bytes(), "here.example"), Some(findings));
        }

        #[test]
        fn any_bytes_are_read_or_passed_over(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let message = [b"Authentication-Results: a;", &bytes[..], b"\r\n\r\n"].concat();
            let _ = Findings::of(&message, "a");
        }
    }
}
