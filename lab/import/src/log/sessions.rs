//! Groups requests of one client into sessions: requests within half an hour belong to the same one, after a wait.
//! Sessions end in another order than they start, so their rows are stored in a separate file until all are known.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{self, Read, Seek, SeekFrom, Write};

use super::tally::time;

/// A client that is absent for this time starts another session.
const GAP_US: i64 = 30 * 60 * 1_000_000;
/// Most requests of a session. Further ones form another one.
const MAX_REQUESTS: u32 = 200;
/// Longest paths of a session, together.
const MAX_PATHS: usize = 32 << 10;
/// Bytes of open sessions. Beyond it, the sessions idle for the longest time end.
const MAX_OPEN: usize = 8 << 20;
/// Overhead of an open session besides its texts.
const OPEN_BYTES: usize = 300;
/// Bytes of rows per write.
const MAX_PENDING: usize = 256 << 10;
/// Interval of searches for ended sessions.
const SWEEP_US: i64 = 60 * 1_000_000;

/// Stores rows until their order is known.
pub trait Scratch: Read + Write + Seek {}

impl<T: Read + Write + Seek> Scratch for T {}

/// A request of a session, in the order of starts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Visit<'r> {
    pub(super) us: i64,
    pub(super) took_us: i64,
    pub(super) client: &'r str,
    /// Without a space.
    pub(super) kind: &'r str,
    pub(super) path: &'r str,
    /// JSON, where rows have one.
    pub(super) agent: &'r str,
}

impl<'r> Visit<'r> {
    /// A text that [`Visit::of`] parses.
    pub(super) fn text(&self) -> String {
        let Self {
            took_us,
            client,
            kind,
            path,
            agent,
            ..
        } = self;
        format!("{took_us} {client} {kind} {path} {agent}")
    }

    pub(super) fn of(us: i64, text: &'r str) -> Option<Self> {
        let mut words = text.splitn(5, ' ');
        Some(Self {
            us,
            took_us: words.next()?.parse().ok()?,
            client: words.next()?,
            kind: words.next()?,
            path: words.next()?,
            agent: words.next()?,
        })
    }
}

/// An open session.
#[derive(Debug)]
struct Open {
    begin_us: i64,
    /// The end of all its requests so far,
    end_us: i64,
    /// and the end of the last one.
    last_end_us: i64,
    requests: u32,
    pauses: String,
    kinds: String,
    paths: String,
}

impl Open {
    fn bytes(&self) -> usize {
        self.pauses.len() + self.kinds.len() + self.paths.len() + OPEN_BYTES
    }
}

/// The place of a session's row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    begin_us: i64,
    at: u64,
    bytes: u32,
    length_s: u32,
}

/// The sessions of a log.
pub(super) struct Sessions<'s> {
    scratch: &'s mut dyn Scratch,
    /// Rows that are not written yet.
    pending: Vec<u8>,
    written: u64,
    /// By client and program.
    open: HashMap<String, Open>,
    open_bytes: usize,
    swept_us: i64,
    places: Vec<Place>,
    requests: u64,
    longest: u32,
    cut: u64,
    crowded: u64,
}

impl<'s> Sessions<'s> {
    pub(super) fn new(scratch: &'s mut dyn Scratch) -> Self {
        Self {
            scratch,
            pending: Vec::new(),
            written: 0,
            open: HashMap::new(),
            open_bytes: 0,
            swept_us: i64::MIN,
            places: Vec::new(),
            requests: 0,
            longest: 0,
            cut: 0,
            crowded: 0,
        }
    }

    /// Adds a request.
    pub(super) fn take(&mut self, visit: &Visit<'_>) -> io::Result<()> {
        if visit.us.saturating_sub(self.swept_us) >= SWEEP_US {
            self.swept_us = visit.us;
            self.end_those(|open| visit.us - open.end_us >= GAP_US)?;
        }
        let key = format!("{} {}", visit.client, visit.agent);
        if let Some(open) = self.open.get(&key) {
            let is_over = visit.us - open.end_us >= GAP_US;
            let is_full =
                open.requests >= MAX_REQUESTS || open.paths.len() + visit.path.len() >= MAX_PATHS;
            if is_over || is_full {
                self.cut += u64::from(!is_over);
                self.end(&key)?;
            }
        }
        let key_bytes = key.len();
        let open = self.open.entry(key).or_insert_with(|| {
            self.open_bytes += OPEN_BYTES + key_bytes;
            Open {
                begin_us: visit.us,
                end_us: visit.us,
                last_end_us: visit.us,
                requests: 0,
                pauses: String::new(),
                kinds: String::new(),
                paths: String::new(),
            }
        });
        let before = open.bytes();
        if open.requests > 0 {
            for list in [&mut open.pauses, &mut open.kinds, &mut open.paths] {
                list.push(' ');
            }
        }
        // A parallel request, such as a download, delays no other.
        let pause_us = (visit.us - open.last_end_us).max(0);
        let (seconds, rest) = (pause_us / 1_000_000, pause_us % 1_000_000);
        let _ = match rest {
            0 => write!(open.pauses, "{seconds}"),
            rest => write!(open.pauses, "{seconds}.{rest:06}"),
        };
        open.kinds.push_str(visit.kind);
        open.paths.push_str(visit.path);
        open.requests += 1;
        open.last_end_us = visit.us + visit.took_us;
        open.end_us = open.end_us.max(open.last_end_us);
        self.open_bytes += open.bytes() - before;
        if self.open_bytes > MAX_OPEN {
            self.make_room()?;
        }
        Ok(())
    }

    /// Ends the half of the sessions that was idle for the longest time.
    fn make_room(&mut self) -> io::Result<()> {
        let mut ends: Vec<i64> = self.open.values().map(|open| open.end_us).collect();
        let middle = ends.len() / 2;
        let (_, middle, _) = ends.select_nth_unstable(middle);
        let middle = *middle;
        let before = self.places.len();
        self.end_those(|open| open.end_us <= middle)?;
        self.crowded += (self.places.len() - before) as u64;
        Ok(())
    }

    fn end_those(&mut self, is_over: impl Fn(&Open) -> bool) -> io::Result<()> {
        let over = self.open.iter().filter(|(_, open)| is_over(open));
        let mut over: Vec<(i64, String)> = over
            .map(|(key, open)| (open.begin_us, key.clone()))
            .collect();
        over.sort();
        over.iter().try_for_each(|(_, key)| self.end(key))
    }

    /// Writes the row of a session.
    fn end(&mut self, key: &str) -> io::Result<()> {
        let Some(open) = self.open.remove(key) else {
            return Ok(());
        };
        self.open_bytes -= open.bytes() + key.len();
        let (client, agent) = key.split_once(' ').unwrap_or((key, ""));
        let comma = if agent.is_empty() { "" } else { ",\"agent\":" };
        let row = format!(
            "{{\"time_us\":{},\"requests\":{},\"pauses\":\"{}\",\"kinds\":\"{}\",\"paths\":\"{}\"{comma}{agent},\
             \"client\":\"{client}\"}}\n",
            open.begin_us, open.requests, open.pauses, open.kinds, open.paths
        );
        self.pending.extend(row.as_bytes());
        if self.pending.len() >= MAX_PENDING {
            self.scratch.write_all(&self.pending)?;
            self.pending.clear();
        }
        let length_s = (open.end_us - open.begin_us) / 1_000_000;
        self.places.push(Place {
            begin_us: open.begin_us,
            at: self.written,
            bytes: row.len() as u32,
            length_s: u32::try_from(length_s).unwrap_or(u32::MAX),
        });
        self.written += row.len() as u64;
        self.requests += u64::from(open.requests);
        self.longest = self.longest.max(open.requests);
        Ok(())
    }

    /// Writes all rows in the order of their starts.
    pub(super) fn finish(mut self, rows: &mut dyn Write) -> io::Result<Found> {
        self.end_those(|_| true)?;
        self.scratch.write_all(&std::mem::take(&mut self.pending))?;
        self.scratch.flush()?;
        self.places.sort_unstable();
        let mut row = Vec::new();
        for place in &self.places {
            self.scratch.seek(SeekFrom::Start(place.at))?;
            row.resize(place.bytes as usize, 0);
            self.scratch.read_exact(&mut row)?;
            rows.write_all(&row)?;
        }
        let lengths = self.places.iter().map(|place| f64::from(place.length_s));
        Ok(Found {
            sessions: self.places.len() as u64,
            requests: self.requests,
            longest: self.longest,
            seconds: lengths.clone().sum(),
            longest_s: lengths.fold(0.0, f64::max),
            at_once: at_once(&self.places),
            span_s: span_s(&self.places),
            cut: self.cut,
            crowded: self.crowded,
        })
    }
}

/// From the start of the first session to the end of the last one, in whole seconds.
fn span_s(places: &[Place]) -> u64 {
    let begin_us = places.first().map_or(0, |first| first.begin_us);
    let ends = places.iter().map(|place| {
        let before = u64::try_from(place.begin_us - begin_us).unwrap_or_default();
        before.div_ceil(1_000_000) + u64::from(place.length_s) + 1
    });
    ends.max().unwrap_or_default()
}

/// Most concurrent sessions.
fn at_once(places: &[Place]) -> u64 {
    let mut ends: Vec<i64> = places
        .iter()
        .map(|place| place.begin_us + (i64::from(place.length_s) + 1) * 1_000_000)
        .collect();
    ends.sort_unstable();
    let (mut ended, mut most) = (0, 0);
    for (begun, place) in places.iter().enumerate() {
        while ends.get(ended).is_some_and(|end| *end <= place.begin_us) {
            ended += 1;
        }
        most = most.max(begun + 1 - ended);
    }
    most as u64
}

/// Statistics of the sessions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    sessions: u64,
    requests: u64,
    /// Most requests of one session.
    pub(super) longest: u32,
    seconds: f64,
    longest_s: f64,
    pub(super) at_once: u64,
    /// From the start of the first to the end of the last, s.
    pub(super) span_s: u64,
    cut: u64,
    crowded: u64,
}

impl Found {
    /// In sentences without full stops.
    pub(super) fn said(&self) -> Vec<String> {
        let sessions = self.sessions.max(1) as f64;
        let mut said = vec![format!(
            "{} sessions of {:.1} requests on average, {} at most; they last {} on average, {} at most; {} at once at most",
            self.sessions,
            self.requests as f64 / sessions,
            self.longest,
            time(self.seconds / sessions),
            time(self.longest_s),
            self.at_once
        )];
        if self.cut > 0 {
            said.push(format!(
                "sessions of more than {MAX_REQUESTS} requests or {} KiB of paths go on as further ones: {}",
                MAX_PATHS >> 10,
                self.cut
            ));
        }
        if self.crowded > 0 {
            said.push(format!(
                "sessions that were cut short because too many were open for the memory: {}",
                self.crowded
            ));
        }
        said
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn visit<'r>(second: i64, client: &'r str, path: &'r str) -> Visit<'r> {
        Visit {
            us: second * 1_000_000,
            took_us: 250_000,
            client,
            kind: "GET_2xx",
            path,
            agent: "\"Moz illa\"",
        }
    }

    fn sessions(visits: &[Visit<'_>]) -> (Vec<serde_json::Value>, Found) {
        let mut scratch = Cursor::new(Vec::new());
        let mut sessions = Sessions::new(&mut scratch);
        for visit in visits {
            let text = visit.text();
            sessions.take(&Visit::of(visit.us, &text).unwrap()).unwrap();
        }
        let mut rows = Vec::new();
        let found = sessions.finish(&mut rows).unwrap();
        let rows = String::from_utf8(rows).unwrap();
        let row = |row| serde_json::from_str(row).unwrap();
        (rows.lines().map(row).collect(), found)
    }

    #[test]
    fn gaps_below_half_an_hour_are_waits() {
        let (rows, found) = sessions(&[
            visit(0, "a", "/1"),
            visit(1, "b", "/2"),
            visit(2, "a", "/3"),
            visit(1_802, "a", "/4"),
            visit(1_802 + 1_801, "a", "/5"),
        ]);
        assert_eq!(rows.len(), 3, "{rows:?}");
        assert_eq!(rows[0]["paths"], "/1 /3 /4");
        // Less the durations of the requests, the first of which is due at once.
        assert_eq!(rows[0]["pauses"], "0 1.750000 1799.750000");
        assert_eq!(rows[0]["agent"], "Moz illa");
        assert_eq!(
            (&rows[1]["paths"], &rows[2]["paths"]),
            (&"/2".into(), &"/5".into())
        );
        assert_eq!(
            (found.sessions, found.requests, found.longest, found.at_once),
            (3, 5, 3, 2)
        );
    }

    #[test]
    fn a_long_session_goes_on_as_another_one() {
        let visits: Vec<Visit<'_>> = (0..450).map(|at| visit(at, "a", "/x")).collect();
        let (rows, found) = sessions(&visits);
        let requests: Vec<u64> = rows
            .iter()
            .map(|row| row["requests"].as_u64().unwrap())
            .collect();
        assert_eq!(requests, [200, 200, 50]);
        assert_eq!((found.cut, found.at_once), (2, 1));
    }

    #[test]
    fn memory_of_sessions_under_way_is_bounded() {
        let mut scratch = Cursor::new(Vec::new());
        let mut sessions = Sessions::new(&mut scratch);
        let path = format!("/{}", "x".repeat(2_000));
        let clients: Vec<String> = (0..20_000).map(|client| client.to_string()).collect();
        for client in &clients {
            sessions.take(&visit(0, client, &path)).unwrap();
            assert!(sessions.open_bytes <= MAX_OPEN);
        }
        let mut rows = Vec::new();
        let found = sessions.finish(&mut rows).unwrap();
        assert_eq!(found.sessions, 20_000);
        assert!(found.crowded > 0);
        assert!(
            found
                .said()
                .join(" ")
                .contains("too many were open for the memory")
        );
    }
}
