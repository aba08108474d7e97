//! Redis and compatible servers, by RESP2 (<https://redis.io/docs/latest/develop/reference/protocol-spec/>). A request
//! is one command; its response is a text, or JSON if the reply is a list.

use std::io::Write as _;
use std::str::FromStr;

use lab_workload::{SignIn, Speech, Template, UserScope, Workload};

use lab_client::dialogue::{Dialogue, Out, Reply, Turn};
use lab_client::{RequestId, Side, Unmade};

/// Longest line of a reply: the protocol's own bound (`PROTO_INLINE_MAX_SIZE`).
const MAX_LINE: usize = 64 << 10;
/// Deepest nesting of lists in a reply.
const MAX_DEPTH: usize = 32;

/// The Redis dialogue.
pub struct Redis {
    /// By the request's index: first the template of its `set`, then the words.
    commands: Vec<Box<[Template]>>,
    sign_in: Option<SignIn>,
}

/// Commands that are sent together, and their pending replies.
#[derive(Default)]
pub struct RedisExchange {
    message: Vec<u8>,
    replies: usize,
    reader: ReplyReader,
    refused: Option<Box<str>>,
    word: String,
}

/// Reads replies incrementally.
#[derive(Debug, Default)]
pub struct ReplyReader {
    /// Remaining entries of each open list, outermost first.
    open: Vec<u64>,
}

impl Redis {
    /// Prepares the requests of a workload.
    #[must_use]
    pub fn new(workload: &Workload) -> Self {
        let words = workload.requests().map(|request| {
            let said = request.said.iter().flat_map(|said| said.templates());
            std::iter::once(&request.target)
                .chain(said)
                .cloned()
                .collect()
        });
        Self {
            commands: words.collect(),
            sign_in: match &workload.speech {
                Speech::Redis(sign_in) => Some(sign_in.clone()),
                _ => None,
            },
        }
    }
}

impl RedisExchange {
    fn begin(&mut self) {
        self.message.clear();
        self.replies = 0;
        self.reader = ReplyReader::default();
        self.refused = None;
    }

    /// Starts a command with this number of words.
    fn command(&mut self, words: usize) {
        self.replies += 1;
        // Writing to memory can't fail.
        let _infallible = write!(self.message, "*{words}\r\n");
    }

    fn word(&mut self, word: &Template, scope: &mut UserScope) -> Result<(), Unmade> {
        let mut text = std::mem::take(&mut self.word);
        text.clear();
        let rendered = word.render(scope, &mut text);
        self.bytes(text.as_bytes());
        self.word = text;
        Ok(rendered?)
    }

    fn bytes(&mut self, word: &[u8]) {
        let _infallible = write!(self.message, "${}\r\n", word.len());
        self.message.extend_from_slice(word);
        self.message.extend_from_slice(b"\r\n");
    }
}

impl Dialogue for Redis {
    type Line = ();
    type ExchangeState = RedisExchange;

    fn open(&self, scope: &mut UserScope, talk: &mut RedisExchange) -> Result<(), Unmade> {
        talk.begin();
        let Some(sign_in) = &self.sign_in else {
            return Ok(());
        };
        if let Some(password) = &sign_in.password {
            let name = sign_in.username.iter();
            talk.command(2 + name.len());
            talk.bytes(b"AUTH");
            for word in name.chain([password]) {
                talk.word(word, scope)?;
            }
        }
        if let Some(database) = &sign_in.database {
            talk.command(2);
            talk.bytes(b"SELECT");
            talk.word(database, scope)?;
        }
        Ok(())
    }

    fn ask(
        &self,
        request: RequestId,
        scope: &mut UserScope,
        talk: &mut RedisExchange,
    ) -> Result<(), Unmade> {
        talk.begin();
        if let [sets, words @ ..] = &*self.commands[request as usize] {
            talk.word.clear();
            sets.render(scope, &mut talk.word)?;
            talk.command(words.len());
            for word in words {
                talk.word(word, scope)?;
            }
        }
        Ok(())
    }

    fn turn(
        &self,
        (): &mut (),
        talk: &mut RedisExchange,
        heard: &mut &[u8],
        out: &mut Out,
    ) -> Result<Turn, String> {
        std::mem::swap(&mut out.say, &mut talk.message);
        talk.message.clear();
        while talk.replies > 0 {
            let Some(refused) = talk.reader.read(heard, &mut out.body)? else {
                return Ok(Turn::Listen);
            };
            talk.replies -= 1;
            if refused && talk.refused.is_none() {
                talk.refused = Some(String::from_utf8_lossy(&out.body).into());
            }
        }
        let refused = talk.refused.take();
        Ok(Turn::Done(Reply {
            refused,
            ..Reply::default()
        }))
    }

    fn spell(&self, side: Side, bytes: &[u8]) -> String {
        spelled(side, bytes).unwrap_or_else(|| String::from_utf8_lossy(bytes).into_owned())
    }
}

/// A part of a reply.
enum Token<'a> {
    Text(&'a [u8]),
    Error(&'a [u8]),
    Number(i64),
    Nil,
    /// The start of a list with this number of entries.
    List(u64),
}

impl ReplyReader {
    /// Reads more of a reply. When it is complete, returns `Some`: whether it is an error. `body` then has its text, or
    /// JSON for a list; nothing for nil.
    ///
    /// # Errors
    /// Describes data that is no reply.
    pub fn read(&mut self, heard: &mut &[u8], body: &mut Vec<u8>) -> Result<Option<bool>, String> {
        while let Some(token) = token(heard)? {
            if self.open.is_empty() {
                body.clear();
                match token {
                    Token::List(_) => {}
                    Token::Nil => return Ok(Some(false)),
                    Token::Text(text) => {
                        body.extend_from_slice(text);
                        return Ok(Some(false));
                    }
                    Token::Error(text) => {
                        body.extend_from_slice(text);
                        return Ok(Some(true));
                    }
                    Token::Number(number) => {
                        let _infallible = write!(body, "{number}");
                        return Ok(Some(false));
                    }
                }
            }
            self.entry(&token, body)?;
            if self.open.is_empty() {
                return Ok(Some(false));
            }
        }
        Ok(None)
    }

    /// Writes a part of a list, or the start of one, and closes the lists that it completes.
    fn entry(&mut self, token: &Token<'_>, body: &mut Vec<u8>) -> Result<(), String> {
        if let Some(left) = self.open.last_mut() {
            *left -= 1;
            if body.last() != Some(&b'[') {
                body.push(b',');
            }
        }
        match token {
            Token::List(_) if self.open.len() == MAX_DEPTH => {
                return Err(format!("lists within lists, more than {MAX_DEPTH} deep"));
            }
            Token::List(entries) => {
                self.open.push(*entries);
                body.push(b'[');
            }
            Token::Nil => body.extend_from_slice(b"null"),
            Token::Number(number) => {
                let _infallible = write!(body, "{number}");
            }
            Token::Text(text) | Token::Error(text) => {
                let text = String::from_utf8_lossy(text);
                let _infallible = serde_json::to_writer(&mut *body, &text);
            }
        }
        while self.open.last() == Some(&0) {
            self.open.pop();
            body.push(b']');
        }
        Ok(())
    }
}

/// Takes the next complete part from the front.
fn token<'a>(heard: &mut &'a [u8]) -> Result<Option<Token<'a>>, String> {
    let Some(end) = memchr::memchr(b'\n', &heard[..heard.len().min(MAX_LINE)]) else {
        return match heard.len() < MAX_LINE {
            true => Ok(None),
            false => Err(format!("a line has more than {MAX_LINE} bytes")),
        };
    };
    let (line, after) = (&heard[..end], &heard[end + 1..]);
    let (kind, line) = match line {
        [kind, line @ .., b'\r'] => (*kind, line),
        _ => return Err("a line doesn't begin or end as lines of RESP do".to_owned()),
    };
    let (token, after) = match (kind, line) {
        (b'+', text) => (Token::Text(text), after),
        (b'-', text) => (Token::Error(text), after),
        (b':', number) => (Token::Number(parsed(number)?), after),
        (b'$' | b'*', b"-1") => (Token::Nil, after),
        (b'*', entries) => (Token::List(parsed(entries)?), after),
        (b'$', length) => {
            let length: usize = parsed(length)?;
            let Some(text) = length.checked_add(2).and_then(|end| after.get(..end)) else {
                return Ok(None);
            };
            if !text.ends_with(b"\r\n") {
                return Err("a text doesn't end where it should".to_owned());
            }
            (Token::Text(&text[..length]), &after[length + 2..])
        }
        (other, _) => {
            let other = char::from(other).escape_default();
            return Err(format!(
                "a reply that begins with `{other}` is none of RESP2"
            ));
        }
    };
    *heard = after;
    Ok(Some(token))
}

fn parsed<N: FromStr>(digits: &[u8]) -> Result<N, String> {
    let number = std::str::from_utf8(digits)
        .ok()
        .and_then(|text| text.parse().ok());
    number.ok_or_else(|| "a length or number of RESP is none".to_owned())
}

/// Returns commands as typed and replies as texts, one per line; `None` for an incomplete one.
fn spelled(side: Side, mut bytes: &[u8]) -> Option<String> {
    let mut lines = Vec::new();
    while !bytes.is_empty() {
        let mut body = Vec::new();
        let refused = ReplyReader::default().read(&mut bytes, &mut body).ok()??;
        lines.push(match side {
            Side::User => typed(&serde_json::from_slice::<Vec<String>>(&body).ok()?),
            Side::Server if refused => format!("(error) {}", String::from_utf8_lossy(&body)),
            Side::Server => String::from_utf8_lossy(&body).into_owned(),
        });
    }
    Some(lines.join("\n"))
}

fn typed(words: &[String]) -> String {
    if words
        .first()
        .is_some_and(|name| name.eq_ignore_ascii_case("auth"))
    {
        return "AUTH ***".to_owned();
    }
    let word = |word: &String| match word.is_empty() || word.contains([' ', '"']) {
        true => format!("{word:?}"),
        false => word.clone(),
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the reply and whether it is an error, read in pieces of this many bytes.
    fn read(bytes: &[u8], piece: usize) -> Result<Option<(String, bool)>, String> {
        let (mut reader, mut body, mut kept) = (ReplyReader::default(), Vec::new(), Vec::new());
        for piece in bytes.chunks(piece) {
            kept.extend_from_slice(piece);
            let mut heard = &kept[..];
            let done = reader.read(&mut heard, &mut body)?;
            let taken = kept.len() - heard.len();
            kept.drain(..taken);
            if let Some(refused) = done {
                return Ok(Some((String::from_utf8_lossy(&body).into_owned(), refused)));
            }
        }
        Ok(None)
    }

    #[test]
    fn replies_are_texts_or_json() {
        for (bytes, text, refused) in [
            (&b"+OK\r\n"[..], "OK", false),
            (b"-ERR unknown command\r\n", "ERR unknown command", true),
            (b":-7\r\n", "-7", false),
            (b"$5\r\na\r\nbc\r\n", "a\r\nbc", false),
            (b"$0\r\n\r\n", "", false),
            (b"$-1\r\n", "", false),
            (b"*-1\r\n", "", false),
            (b"*0\r\n", "[]", false),
            (
                b"*3\r\n$1\r\n\"\r\n:4\r\n$-1\r\n",
                r#"["\"",4,null]"#,
                false,
            ),
            (
                b"*2\r\n*2\r\n*0\r\n+a\r\n*1\r\n-no\r\n",
                r#"[[[],"a"],["no"]]"#,
                false,
            ),
        ] {
            for piece in [1, 2, 7, 100] {
                let read = read(bytes, piece).unwrap();
                assert_eq!(
                    read,
                    Some((text.to_owned(), refused)),
                    "{bytes:?} by {piece}"
                );
            }
            assert_eq!(read(&bytes[..bytes.len() - 1], 100), Ok(None));
        }
        let deep = "*1\r\n".repeat(MAX_DEPTH + 1);
        for bad in [
            "HTTP/1.1 400\r\n",
            "+OK\n",
            "\r\n",
            "$x\r\n",
            "$1\r\nabc",
            "%1\r\n",
            &deep,
        ] {
            assert!(read(bad.as_bytes(), 100).is_err(), "{bad}");
        }
        assert!(read(&vec![b'+'; MAX_LINE + 1], 1000).is_err());
    }

    #[test]
    fn what_is_said_is_shown_as_it_is_typed() {
        let mut talk = RedisExchange::default();
        for words in [&["SET", "k", "two words"][..], &["AUTH", "me", "secret"]] {
            talk.command(words.len());
            words.iter().for_each(|word| talk.bytes(word.as_bytes()));
        }
        let shown = spelled(Side::User, &talk.message);
        assert_eq!(shown.as_deref(), Some("SET k \"two words\"\nAUTH ***"));
        let replies = b"+OK\r\n-NOAUTH no\r\n";
        assert_eq!(
            spelled(Side::Server, replies).as_deref(),
            Some("OK\n(error) NOAUTH no")
        );
        assert_eq!(spelled(Side::Server, b"$9\r\nab"), None);
    }

    proptest! {
        #[test]
        fn what_comes_in_pieces_is_the_same(
            bytes in proptest::collection::vec(prop_oneof![
                proptest::sample::select(b"+-:$*0129\r\n".to_vec()), any::<u8>(),
            ], 0..80),
            piece in 1usize..9,
        ) {
            prop_assert_eq!(read(&bytes, piece).ok(), read(&bytes, 1000).ok());
        }
    }
}
