//! Parses one line of a client. The grammar is `smtp-proto`'s, with two additions: address
//! literals, and the postmaster without a domain. Unsupported commands are not distinguished.

use std::net::{Ipv4Addr, Ipv6Addr};

use smtp_proto::{AUTH_LOGIN, AUTH_PLAIN, Error, MAIL_BODY_BINARYMIME, MAIL_REQUIRETLS, Request};

/// A client's command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Greets, and asks for the server's extensions.
    Ehlo(String),
    /// Greets.
    Helo(String),
    /// Begins a message.
    Mail {
        /// The sender; empty for a report that must not be answered.
        from: String,
        /// The size that the client announces.
        size: Option<usize>,
        /// Whether it requests an extension that the server doesn't offer.
        asks_too_much: bool,
    },
    /// Names a recipient.
    Rcpt(String),
    /// Sends the text.
    Data,
    /// Signs in.
    Auth {
        /// The mechanism.
        mechanism: Mechanism,
        /// The initial response, if sent with the command.
        initial: String,
    },
    /// Switches to TLS.
    StartTls,
    /// Discards the message.
    Rset,
    /// Has no effect but a reply.
    Noop,
    /// Asks whether a user exists.
    Vrfy,
    /// Ends the session.
    Quit,
    /// An unsupported command.
    Other,
}

/// A SASL mechanism.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mechanism {
    /// RFC 4616.
    Plain,
    /// Name and password in separate responses.
    Login,
    /// An unsupported mechanism.
    Other,
}

/// Parses a line with its CR LF. `None` if it is malformed.
pub fn command(line: &[u8]) -> Option<Command> {
    let text = line.strip_suffix(b"\r\n")?;
    if text.iter().any(|byte| *byte < b' ' || *byte == 0x7F) {
        return None;
    }
    if is_to_postmaster(text) {
        return Some(Command::Rcpt(POSTMASTER.to_owned()));
    }
    let (line, literal) = match literal(line) {
        Some((before, literal, after)) => ([before, HOST, after].concat(), Some(literal)),
        None => (line.to_vec(), None),
    };
    let mut command = match Request::parse(&mut line.iter()) {
        Ok(request) => known(request),
        Err(Error::UnknownCommand) => Command::Other,
        Err(_) => return None,
    };
    if let (Some(literal), Command::Mail { from: address, .. } | Command::Rcpt(address)) =
        (literal, &mut command)
    {
        let local = address.strip_suffix("literal")?.to_owned();
        *address = local + literal;
    }
    Some(command)
}

/// The recipient that every server has (RFC 5321, 4.5.1).
pub const POSTMASTER: &str = "postmaster";
/// The placeholder for an address literal while the rest of a line is parsed.
const HOST: &[u8] = b"literal";

/// Returns true for a recipient that needs no domain.
fn is_to_postmaster(text: &[u8]) -> bool {
    let wanted = b"RCPT TO:<postmaster>";
    text.trim_ascii_end().eq_ignore_ascii_case(wanted)
}

/// Returns an address literal in a line, with its brackets, and the text before and behind it (RFC 5321, 4.1.3).
fn literal(line: &[u8]) -> Option<(&[u8], &str, &[u8])> {
    let line_text = std::str::from_utf8(line).ok()?;
    let at = line_text.find("@[")? + 1;
    let end = at + line_text[at..].find("]>")? + 1;
    let number = &line_text[at + 1..end - 1];
    let is_number = match number.get(..5) {
        Some(tag) if tag.eq_ignore_ascii_case("IPv6:") => number[5..].parse::<Ipv6Addr>().is_ok(),
        _ => number.parse::<Ipv4Addr>().is_ok(),
    };
    is_number.then(|| (&line[..at], &line_text[at..end], &line[end..]))
}

fn known<T: AsRef<str> + Into<String>>(request: Request<T>) -> Command {
    match request {
        Request::Ehlo { host } => Command::Ehlo(host.into()),
        Request::Helo { host } => Command::Helo(host.into()),
        Request::Mail { from } => Command::Mail {
            size: Some(from.size).filter(|size| *size > 0),
            asks_too_much: from.flags & (MAIL_BODY_BINARYMIME | MAIL_REQUIRETLS) != 0,
            from: from.address.into(),
        },
        Request::Rcpt { to } => Command::Rcpt(to.address.into()),
        Request::Data => Command::Data,
        Request::Auth {
            mechanism,
            initial_response,
        } => Command::Auth {
            mechanism: match mechanism {
                AUTH_PLAIN => Mechanism::Plain,
                AUTH_LOGIN => Mechanism::Login,
                _ => Mechanism::Other,
            },
            initial: initial_response.into(),
        },
        Request::StartTls => Command::StartTls,
        Request::Rset => Command::Rset,
        Request::Noop { .. } => Command::Noop,
        Request::Vrfy { .. } => Command::Vrfy,
        Request::Quit => Command::Quit,
        _ => Command::Other,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(line: &str) -> Option<Command> {
        command(format!("{line}\r\n").as_bytes())
    }

    #[test]
    fn lines_are_read() {
        assert_eq!(read("ehlo there"), Some(Command::Ehlo("there".into())));
        assert_eq!(read("QUIT"), Some(Command::Quit));
        assert_eq!(read("FROB x"), Some(Command::Other));
        assert_eq!(
            read("MAIL FROM:<a@x> SIZE=100 BODY=8BITMIME"),
            Some(Command::Mail {
                from: "a@x".into(),
                size: Some(100),
                asks_too_much: false,
            })
        );
        assert!(matches!(
            read("mail from:<>"),
            Some(Command::Mail { from, .. }) if from.is_empty()
        ));
        assert_eq!(read("RCPT TO:<b@x>"), Some(Command::Rcpt("b@x".into())));
        assert!(matches!(
            read("AUTH PLAIN AGEAYg=="),
            Some(Command::Auth { mechanism: Mechanism::Plain, initial }) if initial == "AGEAYg=="
        ));
        for bad in ["MAIL FROM a", "RCPT TO:b", "EHLO", "QUIT\0", "NOOP \x1B[2J"] {
            assert_eq!(read(bad), None, "{bad:?}");
        }
        assert_eq!(command(b"QUIT\n"), None);
        assert_eq!(command(b"NOOP\rQUIT\r\n"), None);
    }

    #[test]
    fn addresses_of_all_forms_are_read() {
        for (line, address) in [
            ("MAIL FROM:<bob@[192.0.2.1]>", "bob@[192.0.2.1]"),
            (
                "MAIL FROM:<bob@[IPv6:2001:db8::1]> SIZE=5",
                "bob@[IPv6:2001:db8::1]",
            ),
            ("RCPT TO:<ada@[127.0.0.1]>", "ada@[127.0.0.1]"),
            ("RCPT TO:<postmaster>", "postmaster"),
            ("rcpt to:<PostMaster> ", "postmaster"),
            (
                "RCPT TO:<postmaster@here.example>",
                "postmaster@here.example",
            ),
            ("RCPT TO:<ada+lists@here.example>", "ada+lists@here.example"),
            ("RCPT TO:<>", ""),
            (
                "MAIL FROM:<bj\u{f6}rn@k\u{f8}benhavn.example> SMTPUTF8",
                "bj\u{f6}rn@k\u{f8}benhavn.example",
            ),
        ] {
            let found = match read(line) {
                Some(
                    Command::Mail {
                        from,
                        asks_too_much: false,
                        ..
                    }
                    | Command::Rcpt(from),
                ) => from,
                other => panic!("{line}: {other:?}"),
            };
            assert_eq!(found, address, "{line}");
        }
        for bad in [
            "MAIL FROM:<bob@[192.0.2]>",
            "MAIL FROM:<bob@[x]>",
            "MAIL FROM:<@[192.0.2.1]>",
            "MAIL FROM:<bob@[IPv6:192.0.2.1]>",
            "RCPT TO:<bob@[192.0.2.1]",
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_line_panics(line: Vec<u8>, word in "(MAIL FROM:<|RCPT TO:<|AUTH |EHLO )") {
            let _ = command(&line);
            let _ = command(&[word.as_bytes(), &line, b"\r\n"].concat());
        }
    }
}
