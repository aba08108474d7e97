//! Version 1: `PROXY TCP4 192.0.2.1 198.51.100.1 56324 443`, and CR LF.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use crate::outcome::{Header, NoHeader, ProxiedClient};

pub(crate) const SIGNATURE: &[u8] = b"PROXY ";
/// Longest line of the specification, including CR LF.
const MAX_BYTES: usize = 107;

pub(crate) fn header(bytes: &[u8]) -> Result<Header, NoHeader> {
    let line = &bytes[..bytes.len().min(MAX_BYTES)];
    let Some(end) = line.iter().position(|byte| *byte == b'\n') else {
        return match line.len() < MAX_BYTES {
            true => Ok(Header::Partial),
            false => Err(NoHeader::Malformed),
        };
    };
    let told = line[..end]
        .strip_suffix(b"\r")
        .and_then(|line| std::str::from_utf8(line).ok())
        .and_then(client);
    Ok(Header::Whole {
        bytes: end + 1,
        client: told.ok_or(NoHeader::Malformed)?,
    })
}

fn client(line: &str) -> Option<ProxiedClient> {
    let mut words = line.split(' ').skip(1);
    let from: IpAddr = match words.next()? {
        // The rest is ignored.
        "UNKNOWN" => return Some(ProxiedClient::Nobody),
        "TCP4" => pair::<Ipv4Addr>(&mut words)?.into(),
        "TCP6" => pair::<Ipv6Addr>(&mut words)?.into(),
        _ => return None,
    };
    let are_ports = is_port(words.next()?) && is_port(words.next()?);
    (are_ports && words.next().is_none()).then_some(ProxiedClient::Client(from))
}

/// Returns the source address; the destination must be an address, too.
fn pair<'a, A: FromStr>(words: &mut impl Iterator<Item = &'a str>) -> Option<A> {
    let from = words.next()?.parse().ok()?;
    let _to: A = words.next()?.parse().ok()?;
    Some(from)
}

fn is_port(word: &str) -> bool {
    let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
    is_number && (word == "0" || !word.starts_with('0')) && word.parse::<u16>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: Result<ProxiedClient, NoHeader>) {
        let found = header(line.as_bytes());
        let bytes = line.find('\n').map_or(0, |end| end + 1);
        assert_eq!(
            found,
            expected.map(|client| Header::Whole { bytes, client }),
            "{line:?}"
        );
    }

    #[test]
    fn a_line_tells_where_a_connection_comes_from() {
        let client = |text: &str| Ok(ProxiedClient::Client(text.parse().unwrap()));
        check(
            "PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\nGET /",
            client("192.0.2.1"),
        );
        check(
            "PROXY TCP6 2001:db8::1 ::1 0 65535\r\n",
            client("2001:db8::1"),
        );
        check("PROXY UNKNOWN\r\n", Ok(ProxiedClient::Nobody));
        check("PROXY UNKNOWN ffff::1 x y\r\n", Ok(ProxiedClient::Nobody));
    }

    #[test]
    fn a_line_that_is_written_otherwise_is_refused() {
        for line in [
            "PROXY \r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\n",
            "PROXY TCP4 192.0.2.1 198.51.100.1 56324\r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.1 56324 443 1\r\n",
            "PROXY TCP4  192.0.2.1 198.51.100.1 56324 443\r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.1 +6324 443\r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.1 056324 443\r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.1 65536 443\r\n",
            "PROXY TCP4 2001:db8::1 ::1 1 2\r\n",
            "PROXY TCP6 192.0.2.1 192.0.2.2 1 2\r\n",
            "PROXY TCP4 192.0.2.256 192.0.2.2 1 2\r\n",
            "PROXY tcp4 192.0.2.1 192.0.2.2 1 2\r\n",
            "PROXY UDP4 192.0.2.1 192.0.2.2 1 2\r\n",
        ] {
            check(line, Err(NoHeader::Malformed));
        }
        let long = "PROXY UNKNOWN ".to_owned() + &"x".repeat(200);
        check(&long, Err(NoHeader::Malformed));
        assert_eq!(header(&long.as_bytes()[..106]), Ok(Header::Partial));
    }
}
