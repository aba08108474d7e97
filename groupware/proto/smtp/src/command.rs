//! One line of a client, read. The grammar is `smtp-proto`'s; what this server does not do is not
//! told apart.

use smtp_proto::{
    AUTH_LOGIN, AUTH_PLAIN, Error, MAIL_BODY_BINARYMIME, MAIL_REQUIRETLS, MAIL_SMTPUTF8, Request,
};

/// What a client asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Greets, and wants to know what the server can.
    Ehlo(String),
    /// Greets.
    Helo(String),
    /// Begins a message.
    Mail {
        /// The sender; empty for a report that must not be answered.
        from: String,
        /// The size that the client announces.
        size: Option<usize>,
        /// It asks for what the server doesn't offer.
        asks_too_much: bool,
    },
    /// Names a recipient.
    Rcpt(String),
    /// Sends the text.
    Data,
    /// Signs in.
    Auth {
        /// How.
        mechanism: Mechanism,
        /// The first answer, if it comes at once.
        initial: String,
    },
    /// Goes over to TLS.
    StartTls,
    /// Gives up the message.
    Rset,
    /// Asks for an answer.
    Noop,
    /// Asks whether there is a user.
    Vrfy,
    /// Ends.
    Quit,
    /// Something that is not done here.
    Other,
}

/// How a client signs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mechanism {
    /// RFC 4616.
    Plain,
    /// Name and password one after the other.
    Login,
    /// One that is not known here.
    Other,
}

/// Reads a line, its CR LF included. `None` for what makes no sense.
pub fn command(line: &[u8]) -> Option<Command> {
    let text = line.strip_suffix(b"\r\n")?;
    if text.iter().any(|byte| *byte < b' ' || *byte == 0x7F) {
        return None;
    }
    match Request::parse(&mut line.iter()) {
        Ok(request) => Some(known(request)),
        Err(Error::UnknownCommand) => Some(Command::Other),
        Err(_) => None,
    }
}

fn known<T: AsRef<str> + Into<String>>(request: Request<T>) -> Command {
    match request {
        Request::Ehlo { host } => Command::Ehlo(host.into()),
        Request::Helo { host } => Command::Helo(host.into()),
        Request::Mail { from } => Command::Mail {
            size: Some(from.size).filter(|size| *size > 0),
            asks_too_much: from.flags & (MAIL_BODY_BINARYMIME | MAIL_REQUIRETLS | MAIL_SMTPUTF8)
                != 0,
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

    proptest! {
        #[test]
        fn no_line_panics(line: Vec<u8>, word in "(MAIL FROM:<|RCPT TO:<|AUTH |EHLO )") {
            let _ = command(&line);
            let _ = command(&[word.as_bytes(), &line, b"\r\n"].concat());
        }
    }
}
