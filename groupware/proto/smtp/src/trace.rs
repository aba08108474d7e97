//! The trace fields of a received message (RFC 5321, 4.4).

use std::net::IpAddr;

use jiff::Timestamp;
use jiff::fmt::rfc2822;
use jiff::tz::TimeZone;

/// How a message was received.
#[derive(Debug, Clone, Copy)]
pub struct Trace<'a> {
    /// The client's name in its greeting.
    pub helo: &'a str,
    /// The client's address.
    pub peer: IpAddr,
    /// The name of this server.
    pub domain: &'a str,
    /// Whether the client greeted with EHLO.
    pub is_esmtp: bool,
    /// Whether it was received over TLS.
    pub is_tls: bool,
    /// Whether its sender has signed in.
    pub is_signed_in: bool,
    /// Its number, which the reply to the client repeats.
    pub id: u128,
    /// The recipient, if there is only one: the field must not reveal others.
    pub only_for: Option<&'a str>,
    /// The time of receipt, in seconds since 1970.
    pub now_s: i64,
}

impl Trace<'_> {
    /// Returns the `Received` field.
    pub fn received(&self) -> String {
        let helo = self.helo.chars().filter(|letter| {
            letter.is_ascii_graphic() && !matches!(letter, '(' | ')' | '<' | '>' | ';' | '"' | '\\')
        });
        let helo: String = helo.take(255).collect();
        // RFC 3848.
        let protocol = match (self.is_esmtp, self.is_tls, self.is_signed_in) {
            (false, ..) => "SMTP",
            (true, false, false) => "ESMTP",
            (true, false, true) => "ESMTPA",
            (true, true, false) => "ESMTPS",
            (true, true, true) => "ESMTPSA",
        };
        let peer = match self.peer.to_canonical() {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("IPv6:{address}"),
        };
        let only_for = self
            .only_for
            .map_or_else(String::new, |to| format!("\r\n\tfor <{to}>"));
        let moment = Timestamp::from_second(self.now_s).unwrap_or_default();
        let date = rfc2822::to_string(&moment.to_zoned(TimeZone::UTC)).unwrap_or_default();
        format!(
            "Received: from {helo} ([{peer}])\r\n\tby {} with {protocol} id {:032X}{only_for};\r\n\t\
             {date}\r\n",
            self.domain, self.id
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_field_says_how_it_came_and_nothing_else() {
        let trace = Trace {
            helo: "there (x)\r\nBcc: y",
            peer: IpAddr::from([192, 0, 2, 1]),
            domain: "localhost",
            is_esmtp: true,
            is_tls: true,
            is_signed_in: false,
            id: 7,
            only_for: Some("ann@localhost"),
            now_s: 1_767_225_600,
        };
        assert_eq!(
            trace.received(),
            "Received: from therexBcc:y ([192.0.2.1])\r\n\tby localhost with ESMTPS id \
             00000000000000000000000000000007\r\n\tfor <ann@localhost>;\r\n\t\
             Thu, 1 Jan 2026 00:00:00 +0000\r\n"
        );
    }
}
