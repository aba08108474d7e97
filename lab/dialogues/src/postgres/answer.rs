//! Reads PostgreSQL's response messages, and converts rows to JSON.

use std::io::Write as _;

use bytes::BytesMut;
use fallible_iterator::FallibleIterator as _;
use postgres_protocol::message::backend::{
    COMMAND_COMPLETE_TAG, DATA_ROW_TAG, DataRowBody, ERROR_RESPONSE_TAG, ErrorResponseBody, Header,
    Message, NOTICE_RESPONSE_TAG, NOTIFICATION_RESPONSE_TAG, ROW_DESCRIPTION_TAG,
    RowDescriptionBody,
};
use serde::de::IgnoredAny;
use serde_json::Number;

/// Maximum length of a short message, and of any: PostgreSQL's own client treats longer ones as invalid
/// (`pqParseInput3`), and the server sends none (`MaxAllocSize`).
const MAX_SHORT: usize = 30_000;
const MAX_LONG: usize = 0x3fff_ffff;
const COPY_DATA_TAG: u8 = b'd';
/// Maximum bytes kept of a column's name: each row repeats it. PostgreSQL's own have at most 63.
const MAX_NAME: usize = 255;

/// Reads responses incrementally.
#[derive(Default)]
pub struct PostgresAnswer {
    frame: BytesMut,
    /// Whether rows are recorded.
    is_read: bool,
    columns: Vec<Column>,
    /// Number of recorded rows.
    rows: u64,
    /// Number of rows returned or changed.
    count: u64,
    done: Vec<String>,
}

/// A message that is not part of rows.
pub enum PostgresResult {
    /// The end of the response.
    End(PostgresReady),
    /// The server refuses the request.
    Refused {
        /// Whether the server also ends the connection.
        ends: bool,
        /// SQLSTATE and message.
        why: Box<str>,
    },
    /// The statement was parsed.
    Parsed,
    /// The server waits for rows.
    WantsRows,
    /// Any other message, such as an authentication request.
    Other(Message),
}

/// The server's transaction state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PostgresReady {
    /// Idle.
    Idle,
    /// In a transaction.
    InTransaction,
    /// In a failed transaction; the server refuses all commands but its end.
    InFailed,
}

impl PostgresReady {
    fn of(status: u8) -> Self {
        match status {
            b'T' => Self::InTransaction,
            b'E' => Self::InFailed,
            _ => Self::Idle,
        }
    }
}

/// A column of the rows.
struct Column {
    /// Its name as JSON.
    name: Box<[u8]>,
    kind: Kind,
}

/// How to write a value as JSON.
#[derive(Clone, Copy)]
enum Kind {
    Switch,
    Number,
    Json,
    Text,
}

impl Kind {
    /// Selects by the identifiers of PostgreSQL's own types (`pg_type.dat`).
    fn of(oid: u32) -> Self {
        match oid {
            16 => Self::Switch,
            20 | 21 | 23 | 26 | 700 | 701 | 1700 => Self::Number,
            114 | 3802 => Self::Json,
            _ => Self::Text,
        }
    }
}

impl PostgresAnswer {
    /// Discards the previous response, and sets whether the next one's rows are read.
    pub fn begin(&mut self, is_read: bool) {
        self.is_read = is_read;
        self.columns.clear();
        self.rows = 0;
        self.count = 0;
        self.done.clear();
    }

    /// Reads up to the next message that is not part of rows. At the end `body` has the response: `{"rows": [{"id":
    /// 1}], "count": 1, "done": ["SELECT 1"]}`, or nothing if it isn't read.
    ///
    /// # Errors
    /// Describes data that is no PostgreSQL message.
    pub fn read(
        &mut self,
        heard: &mut &[u8],
        body: &mut Vec<u8>,
    ) -> Result<Option<PostgresResult>, String> {
        while let Some(message) = self.next(heard)? {
            match message {
                Message::RowDescription(description) => self.columns(&description)?,
                Message::DataRow(row) => self.row(&row, body)?,
                Message::CommandComplete(done) => {
                    let tag = done.tag().map_err(words)?;
                    let rows = tag.rsplit(' ').next().and_then(|last| last.parse().ok());
                    self.count = self.count.saturating_add(rows.unwrap_or(0));
                    self.done.push(tag.to_owned());
                }
                Message::ReadyForQuery(ready) => {
                    self.end(body);
                    return Ok(Some(PostgresResult::End(PostgresReady::of(ready.status()))));
                }
                Message::ErrorResponse(body) => return refusal(&body).map(Some),
                Message::ParseComplete => return Ok(Some(PostgresResult::Parsed)),
                Message::CopyInResponse(_) => return Ok(Some(PostgresResult::WantsRows)),
                Message::CopyData(_) | Message::NoticeResponse(_) => {}
                message => return Ok(Some(PostgresResult::Other(message))),
            }
        }
        Ok(None)
    }

    /// Returns the next message; skips the content of unused ones.
    fn next(&mut self, heard: &mut &[u8]) -> Result<Option<Message>, String> {
        loop {
            let Some(header) = Header::parse(heard).map_err(words)? else {
                return Ok(None);
            };
            let tag = header.tag();
            let is_long = [
                ROW_DESCRIPTION_TAG,
                DATA_ROW_TAG,
                COPY_DATA_TAG,
                ERROR_RESPONSE_TAG,
                NOTICE_RESPONSE_TAG,
                NOTIFICATION_RESPONSE_TAG,
            ]
            .contains(&tag);
            let most = if is_long { MAX_LONG } else { MAX_SHORT };
            let length = usize::try_from(header.len()).unwrap_or(usize::MAX);
            if length > most {
                return Err("what the server says is none of PostgreSQL".to_owned());
            }
            let Some((whole, rest)) = heard.split_at_checked(length + 1) else {
                return Ok(None);
            };
            *heard = rest;
            let of_rows = [
                ROW_DESCRIPTION_TAG,
                DATA_ROW_TAG,
                COPY_DATA_TAG,
                COMMAND_COMPLETE_TAG,
            ];
            if !self.is_read && of_rows.contains(&tag) {
                continue;
            }
            self.frame.clear();
            self.frame.extend_from_slice(whole);
            return Message::parse(&mut self.frame).map_err(words);
        }
    }

    fn columns(&mut self, description: &RowDescriptionBody) -> Result<(), String> {
        self.columns.clear();
        let mut fields = description.fields();
        while let Some(field) = fields.next().map_err(words)? {
            let name = field.name();
            let name = &name[..name.floor_char_boundary(MAX_NAME)];
            let name = serde_json::to_vec(name).map_err(words)?;
            self.columns.push(Column {
                name: name.into(),
                kind: Kind::of(field.type_oid()),
            });
        }
        Ok(())
    }

    fn row(&mut self, row: &DataRowBody, body: &mut Vec<u8>) -> Result<(), String> {
        self.open(body);
        body.extend_from_slice(if self.rows > 0 { b",{" } else { b"{" });
        self.rows += 1;
        let mut ranges = row.ranges();
        let mut columns = self.columns.iter();
        let mut is_first = true;
        while let Some(range) = ranges.next().map_err(words)? {
            let column = columns.next().ok_or("a row has more values than columns")?;
            if !std::mem::take(&mut is_first) {
                body.push(b',');
            }
            body.extend_from_slice(&column.name);
            body.push(b':');
            match range.map(|range| &row.buffer()[range]) {
                Some(value) => write_value(column.kind, value, body),
                None => body.extend_from_slice(b"null"),
            }
        }
        body.push(b'}');
        Ok(())
    }

    /// Starts the response if it has not started.
    fn open(&self, body: &mut Vec<u8>) {
        if self.rows == 0 {
            body.clear();
            body.extend_from_slice(b"{\"rows\":[");
        }
    }

    fn end(&mut self, body: &mut Vec<u8>) {
        if !self.is_read {
            body.clear();
            return;
        }
        self.open(body);
        // Writing to memory can't fail.
        let _infallible = write!(body, "],\"count\":{},\"done\":", self.count);
        let _infallible = serde_json::to_writer(&mut *body, &self.done);
        body.push(b'}');
    }
}

/// Writes a value in PostgreSQL's text format as JSON. A value without a JSON form, such as NaN, becomes a text.
fn write_value(kind: Kind, value: &[u8], body: &mut Vec<u8>) {
    let as_it_is = match kind {
        Kind::Switch if value == b"t" => return body.extend_from_slice(b"true"),
        Kind::Switch if value == b"f" => return body.extend_from_slice(b"false"),
        Kind::Number => serde_json::from_slice::<Number>(value).is_ok(),
        Kind::Json => serde_json::from_slice::<IgnoredAny>(value).is_ok(),
        Kind::Switch | Kind::Text => false,
    };
    match as_it_is {
        true => body.extend_from_slice(value),
        false => {
            // Writing to memory can't fail.
            let text = String::from_utf8_lossy(value);
            let _infallible = serde_json::to_writer(body, &text);
        }
    }
}

fn refusal(body: &ErrorResponseBody) -> Result<PostgresResult, String> {
    let (mut ends, mut code, mut message) = (false, String::new(), String::new());
    let mut fields = body.fields();
    while let Some(field) = fields.next().map_err(words)? {
        let value = String::from_utf8_lossy(field.value_bytes());
        match field.type_() {
            b'V' => ends = matches!(&*value, "FATAL" | "PANIC"),
            b'C' => code = value.into_owned(),
            b'M' => message = value.into_owned(),
            _ => {}
        }
    }
    let why = format!("{code} {message}").into();
    Ok(PostgresResult::Refused { ends, why })
}

pub(super) fn words(error: impl std::fmt::Display) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests;
