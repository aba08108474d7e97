//! Imports access logs and recordings of GoReplay: rows with times and paths, and the workload and study that replay
//! them. A log is processed line by line, in bounded memory.

mod entry;
mod files;
mod format;
mod gor;
mod json;
mod known;
mod moment;
mod options;
mod order;
mod sessions;
mod syslog;
mod tally;
mod target;
mod w3c;

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, BufRead, Read as _, Write};

use entry::{Entry, Point, Skip};
use files::Columns;
pub use format::FORMATS;
use format::Format;
use json::Fields;
use known::Known;
pub use options::LogOptions;
use order::Order;
pub use sessions::Scratch;
use sessions::{Sessions, Visit};
use tally::{Outcome, Tally};

/// Safe methods in use (RFC 9110, section 9.2.1).
pub const SAFE_METHODS: [&str; 3] = ["GET", "HEAD", "OPTIONS"];

/// Longest line, or record of GoReplay.
const MAX_LINE: usize = 64 << 10;
/// Longest row, less than the limit of 64 KiB.
const MAX_ROW: usize = 60 << 10;
/// Longest body.
const MAX_BODY: usize = 32 << 10;
/// Longest user agent.
const MAX_AGENT: usize = 300;
/// Bytes that are examined for the format.
const LOOKED_AT: usize = 64 << 10;

/// An imported log, without the rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedLog {
    /// The workload file.
    pub workload: String,
    /// The study file.
    pub study: String,
    /// Notes about found and skipped lines; a sentence each, without a full stop.
    pub said: Vec<String>,
}

/// Why a log can't be imported.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// It can't be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The rows can't be written.
    #[error(transparent)]
    Rows(io::Error),
    /// The format is invalid.
    #[error("{0}")]
    Format(String),
    /// Its format is unknown.
    #[error("its lines have none of the usual formats")]
    Unknown,
    /// No line is a request to replay.
    #[error("no request is left: {}", said.join("; "))]
    Nothing {
        /// The reasons.
        said: Vec<String>,
    },
}

/// The parser of lines.
enum Reader {
    Text(Format),
    Json(Fields),
    W3c(w3c::Fields),
    Gor,
}

impl Reader {
    /// Parses a line, and returns the point that its time refers to; `None` if it is no request.
    fn entry<'l>(&mut self, line: &'l [u8]) -> Result<Option<(Entry<'l>, Point)>, Skip> {
        // If the message is invalid, syslog's prefix may be a part of the format.
        if let Some(message) = syslog::message(line)
            && let Ok(found) = self.read(message)
        {
            return Ok(found);
        }
        self.read(line)
    }

    fn read<'l>(&mut self, line: &'l [u8]) -> Result<Option<(Entry<'l>, Point)>, Skip> {
        Ok(match self {
            Self::Text(format) => Some((format.entry(line)?, format.point)),
            Self::Json(fields) => Some(fields.entry(line)?),
            Self::W3c(fields) => fields.entry(line)?.map(|entry| (entry, Point::End)),
            Self::Gor => gor::entry(line)?.map(|entry| (entry, Point::Start)),
        })
    }
}

/// Reads a log, and writes a row for each request.
///
/// # Errors
/// When the log can't be read, its format is unknown, or no request is left.
pub fn import(
    log: &mut dyn BufRead,
    options: &LogOptions,
    rows: &mut dyn Write,
) -> Result<ImportedLog, LogError> {
    import_by((log, rows), options, None)
}

/// Reads a log, and writes a row for each session of a client. Rows are stored in `scratch`, which is empty, until all
/// are known.
///
/// # Errors
/// As of [`import`].
pub fn import_sessions(
    log: &mut dyn BufRead,
    options: &LogOptions,
    (rows, scratch): (&mut dyn Write, &mut dyn Scratch),
) -> Result<ImportedLog, LogError> {
    import_by((log, rows), options, Some(Sessions::new(scratch)))
}

fn import_by<'o>(
    (log, rows): (&mut dyn BufRead, &mut dyn Write),
    options: &'o LogOptions,
    sessions: Option<Sessions<'o>>,
) -> Result<ImportedLog, LogError> {
    let mut head = Vec::new();
    log.take(LOOKED_AT as u64).read_to_end(&mut head)?;
    let (mut reader, name) = reader(options, &head)?;
    let mut log = head.as_slice().chain(log);
    let mut import = Import {
        options,
        tally: Tally::default(),
        order: Order::new(options.seed),
        names: Known::default(),
        clients: Known::default(),
        columns: columns(&reader, options),
        sessions,
        spread: 0,
        point: Point::Start,
        has_took: true,
    };
    let mut line = Vec::new();
    let end: &[u8] = match reader {
        Reader::Gor => gor::SEPARATOR,
        Reader::Text(_) | Reader::Json(_) | Reader::W3c(_) => b"",
    };
    while let Some(is_whole) = next(&mut log, &mut line, end)? {
        if line.trim_ascii().is_empty() && is_whole {
            continue;
        }
        import.tally.lines += 1;
        let taken = match is_whole {
            true => import.line(&mut reader, &line),
            false => Err(Skip::TooLong),
        };
        if let Err(why) = taken {
            import.tally.skip(why);
        }
        while let Some((us, row)) = import.order.due() {
            import.write(us, &row, rows)?;
        }
    }
    while let Some((us, row)) = import.order.rest() {
        import.write(us, &row, rows)?;
    }
    import.finish(name, rows)
}

/// The parser of lines, and its name.
fn reader(options: &LogOptions, head: &[u8]) -> Result<(Reader, &'static str), LogError> {
    let fields = || Fields::parse(&options.fields).map_err(LogError::Format);
    let lines = head.split(|b| *b == b'\n').map(<[u8]>::trim_ascii);
    let is_w3c = lines.clone().any(|line| line.starts_with(w3c::FIELDS));
    // The first request of a recording may have more lines than those examined.
    let is_gor = lines.clone().any(|line| line == gor::SEPARATOR);
    let first = lines.filter(|line| !line.is_empty()).take(20);
    let lines: Vec<&[u8]> = first
        .map(|line| syslog::message(line).unwrap_or(line))
        .collect();
    let is_json = |line: &&[u8]| line.starts_with(b"{");
    match options.format.as_deref() {
        Some("gor") => Ok((Reader::Gor, "gor")),
        Some("w3c") => Ok((Reader::W3c(w3c::Fields::default()), "w3c")),
        Some("json" | "caddy" | "traefik") => Ok((Reader::Json(fields()?), "json")),
        Some("envoy") if lines.iter().any(is_json) => Ok((Reader::Json(fields()?), "json")),
        Some(named) => {
            let format = Format::named(named).map_or_else(|| Format::parse(named), Ok);
            format
                .map(|format| (Reader::Text(format), "the format"))
                .map_err(LogError::Format)
        }
        None if is_gor => Ok((Reader::Gor, "gor")),
        None if is_w3c => Ok((Reader::W3c(w3c::Fields::default()), "w3c")),
        None if lines.iter().any(is_json) => Ok((Reader::Json(fields()?), "json")),
        None => {
            // The longest first: each also matches lines of the next.
            let names = [
                "alb",
                "haproxy",
                "envoy",
                "vhost_combined",
                "combined",
                "common",
            ];
            let read = |name| {
                let format = Format::named(name)?;
                let is_read = lines.iter().any(|line| format.entry(line).is_ok());
                is_read.then_some((Reader::Text(format), name))
            };
            names.into_iter().find_map(read).ok_or(LogError::Unknown)
        }
    }
}

/// The columns of rows, if known without the lines.
fn columns(reader: &Reader, options: &LogOptions) -> Option<Columns> {
    let is_safe = |method: &String| SAFE_METHODS.contains(&&**method);
    match reader {
        Reader::Text(format) => Some(Columns {
            has_agent: format.has_agent(),
            has_body: false,
        }),
        Reader::Gor => Some(Columns {
            has_agent: true,
            has_body: !options.methods.iter().all(is_safe),
        }),
        Reader::Json(_) | Reader::W3c(_) => None,
    }
}

/// Reads the next line, or with an `end` all lines before that one. False if it was too long, `None` at the end of the
/// log.
fn next(log: &mut dyn BufRead, line: &mut Vec<u8>, end: &[u8]) -> io::Result<Option<bool>> {
    line.clear();
    let mut is_whole = true;
    let mut has_begun = false;
    loop {
        let begin = line.len();
        let limit = (MAX_LINE - begin) as u64;
        let count = log.take(limit).read_until(b'\n', line)?;
        let has_end = line.ends_with(b"\n");
        if count == 0 && limit > 0 {
            return Ok(has_begun.then_some(is_whole));
        }
        has_begun = true;
        if !has_end && line.len() >= MAX_LINE {
            // The rest of an overlong line is dropped.
            is_whole = false;
            line.clear();
            continue;
        }
        if end.is_empty() {
            while line.last().is_some_and(|b| b"\r\n".contains(b)) {
                line.pop();
            }
            return Ok(Some(is_whole));
        }
        if line[begin..].trim_ascii() == end {
            // The line end before it is removed.
            line.truncate(begin.saturating_sub(1));
            return Ok(Some(is_whole));
        }
        if line.len() >= MAX_LINE {
            is_whole = false;
            line.clear();
        }
    }
}

/// An import in progress.
struct Import<'o> {
    options: &'o LogOptions,
    /// Set if rows are sessions.
    sessions: Option<Sessions<'o>>,
    tally: Tally,
    order: Order,
    names: target::Names,
    /// Pseudonyms of addresses.
    clients: Known<String>,
    /// The columns of rows, from the first one.
    columns: Option<Columns>,
    /// Rows whose time has whole seconds.
    spread: u64,
    /// The point of requests that the times of rows refer to.
    point: Point,
    /// True if all had a duration.
    has_took: bool,
}

impl Import<'_> {
    fn line(&mut self, reader: &mut Reader, line: &[u8]) -> Result<(), Skip> {
        match reader.entry(line)? {
            Some((entry, point)) => self.take(&entry, point),
            None => Ok(()),
        }
    }

    fn take(&mut self, entry: &Entry<'_>, point: Point) -> Result<(), Skip> {
        let moment = entry.moment.ok_or(Skip::Moment)?;
        let method = std::str::from_utf8(&entry.method).map_err(|_| Skip::Request)?;
        let is_method = |b: u8| b.is_ascii_uppercase() || b == b'-' || b == b'_';
        if method.is_empty() || method.len() > 32 || !method.bytes().all(is_method) {
            return Err(Skip::Request);
        }
        if !self.options.methods.iter().any(|one| one == method) {
            return Err(Skip::Method);
        }
        let target = target::target(&entry.target, &mut self.names)?;
        let host = match &target.host {
            Some(host) => host.as_bytes(),
            None => &*entry.host,
        };
        let hosts = &self.options.hosts;
        let is_it = |one: &String| {
            let is_same = |host: &[u8]| host.eq_ignore_ascii_case(one.as_bytes());
            is_same(host) || is_same(without_port(host))
        };
        if !hosts.is_empty() && !hosts.iter().any(is_it) {
            return Err(Skip::Host);
        }
        let columns = *self.columns.get_or_insert(Columns {
            has_agent: entry.agent.is_some(),
            has_body: false,
        });
        let outcome = self
            .tally
            .outcome(method, entry.status, self.options.exact_status);
        let kind = (method, outcome);
        let client = self.client(&entry.client);
        let row = match self.sessions {
            Some(_) => visit(entry, kind, (&target.text, &client), columns)?,
            None => row(entry, kind, (&target.text, &client), columns)?,
        };
        if !self
            .tally
            .take(method, outcome, &target.text[..target.path_bytes])
        {
            return Err(Skip::Method);
        }
        self.tally.drop_values(target.dropped);
        let shift = match (point, entry.took_us) {
            (Point::End, Some(took)) => -took,
            (Point::End, None) => {
                self.has_took = false;
                0
            }
            (Point::Start | Point::Unknown, _) => 0,
        };
        self.point = point;
        match moment.is_whole {
            true => {
                self.spread += 1;
                self.order.push_whole(moment.us, shift, row);
            }
            false => self.order.push(moment.us + shift, row),
        }
        Ok(())
    }

    /// The pseudonym of an address, the same for all of its requests; empty without one.
    fn client(&mut self, address: &[u8]) -> String {
        if address.is_empty() {
            return String::new();
        }
        let (address, salt) = (without_port(address), &self.options.salt);
        self.clients.get(address, || {
            let hash = lab_workload::sha256(&[&salt[..], address].concat());
            hash.get(..12).unwrap_or_default().to_owned()
        })
    }

    fn write(&mut self, us: i64, row: &str, rows: &mut dyn Write) -> Result<(), LogError> {
        self.tally.written(us);
        if let Some(sessions) = &mut self.sessions {
            let visit = Visit::of(us, row);
            return visit.map_or(Ok(()), |visit| {
                sessions.take(&visit).map_err(LogError::Rows)
            });
        }
        writeln!(rows, "{{\"time_us\":{us}{row}").map_err(LogError::Rows)
    }

    fn finish(mut self, format: &str, rows: &mut dyn Write) -> Result<ImportedLog, LogError> {
        let sessions = self.sessions.take().map(|sessions| sessions.finish(rows));
        let sessions = sessions.transpose().map_err(LogError::Rows)?;
        rows.flush().map_err(LogError::Rows)?;
        let (tally, options) = (self.tally, self.options);
        if tally.taken == 0 {
            return Err(LogError::Nothing {
                said: tally.reasons(),
            });
        }
        let mut said = tally.said();
        said.extend(sessions.iter().flat_map(sessions::Found::said));
        if options.format.is_none() {
            said.insert(0, format!("read as {format}"));
        }
        match self.point {
            Point::Start => {}
            Point::End if self.has_took => {}
            Point::End => said.push(
                "the log has the moments at which requests ended, and not how long they took: they are replayed at \
                 those"
                    .to_owned(),
            ),
            Point::Unknown => said.push(
                "this format has the moment at which a request began (Apache) or ended (nginx): it is replayed at that"
                    .to_owned(),
            ),
        }
        if self.spread > 0 {
            said.push(format!(
                "stamps of whole seconds: {}, whose requests are spread evenly over the second by the seed {}",
                self.spread, options.seed
            ));
        }
        if self.order.late > 0 {
            said.push(format!(
                "requests out of order by more than is held in memory: {}, which are moved to the moment of the one before",
                self.order.late
            ));
        }
        let columns = self.columns.unwrap_or_default();
        Ok(ImportedLog {
            workload: files::workload(options, columns, &tally, sessions.as_ref()),
            study: files::study(options, &tally, sessions.as_ref()),
            said,
        })
    }
}

/// A request of a session, without its time.
fn visit(
    entry: &Entry<'_>,
    (method, outcome): (&str, Outcome),
    (path, client): (&str, &str),
    columns: Columns,
) -> Result<String, Skip> {
    if client.is_empty() {
        return Err(Skip::Client);
    }
    if !entry.body.is_empty() {
        return Err(Skip::Body);
    }
    let agent = match columns.has_agent {
        true => {
            let agent = header(entry.agent.as_deref().unwrap_or_default());
            serde_json::Value::from(&*agent).to_string()
        }
        false => String::new(),
    };
    let visit = Visit {
        us: 0,
        took_us: entry.took_us.unwrap_or(0),
        client,
        kind: &files::kind_word(method, outcome),
        path,
        agent: &agent,
    };
    Ok(visit.text())
}

/// A row without its time.
fn row(
    entry: &Entry<'_>,
    (method, outcome): (&str, Outcome),
    (path, client): (&str, &str),
    columns: Columns,
) -> Result<String, Skip> {
    let mut row =
        String::with_capacity(path.len() + entry.agent.as_ref().map_or(0, |a| a.len()) + 120);
    // The kind, which is the name of its step.
    row.extend([",\"kind\":\"", method, " ", &outcome.name(), "\""]);
    let mut member = |name: &str, value: &str| {
        let _ = write!(row, ",\"{name}\":");
        let is_plain = |b: u8| matches!(b, b' '..=b'~') && b != b'"' && b != b'\\';
        match value.bytes().all(is_plain) {
            true => row.extend(["\"", value, "\""]),
            false => row.push_str(&serde_json::Value::from(value).to_string()),
        }
    };
    member("path", path);
    if columns.has_agent {
        member("agent", &header(entry.agent.as_deref().unwrap_or_default()));
    }
    if columns.has_body {
        if entry.body.len() > MAX_BODY {
            return Err(Skip::Body);
        }
        let body = std::str::from_utf8(&entry.body).map_err(|_| Skip::Body)?;
        let kind = match &*entry.content_type {
            b"" => b"application/octet-stream",
            kind => kind,
        };
        member("type", &header(kind));
        member("body", body);
    } else if !entry.body.is_empty() {
        return Err(Skip::Body);
    }
    member("client", if client.is_empty() { "-" } else { client });
    let _ = write!(row, ",\"status\":{}", entry.status.unwrap_or(0));
    let _ = write!(row, ",\"bytes\":{}}}", entry.bytes.unwrap_or(0));
    match row.len() > MAX_ROW {
        true => Err(Skip::TooLong),
        false => Ok(row),
    }
}

/// A host or an address without `:443`. An address of IPv6 without brackets is unchanged.
fn without_port(host: &[u8]) -> &[u8] {
    let colon = host.iter().rposition(|b| *b == b':');
    let colon = colon.filter(|at| {
        let is_port = host[at + 1..].iter().all(u8::is_ascii_digit);
        is_port && (!host[..*at].contains(&b':') || host[..*at].ends_with(b"]"))
    });
    &host[..colon.unwrap_or(host.len())]
}

/// A header's value: one line of visible characters.
fn header(value: &[u8]) -> Cow<'_, str> {
    let value = &value[..value.len().min(MAX_AGENT)];
    let is_visible = |b: &u8| (b' '..=b'~').contains(b);
    let text = match std::str::from_utf8(value) {
        Ok(text) if value.iter().all(is_visible) => Cow::Borrowed(text.trim()),
        _ => {
            let visible = |b: &u8| if is_visible(b) { char::from(*b) } else { '?' };
            let text: String = value.iter().map(visible).collect();
            Cow::Owned(text.trim().to_owned())
        }
    };
    if text.is_empty() {
        Cow::Borrowed("-")
    } else {
        text
    }
}

#[cfg(test)]
mod tests;
