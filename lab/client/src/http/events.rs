//! Parser for server-sent events in a stream (WHATWG HTML, section 9.2), with their arrival times. Pure: bytes and
//! times in, events out.

use lab_workload::Events;

use crate::exchange::EventTimes;
use crate::time::Nanos;

/// The maximum length of a line, and of an event.
const MAX_EVENT_BYTES: usize = 1 << 20;
/// The maximum size of the events' data kept for expectations and captures.
const MAX_TEXT_BYTES: usize = 4 << 20;

/// Parses a stream of events, in pieces of any size.
#[derive(Debug, Default)]
pub struct EventParser {
    /// An incomplete line.
    line: Vec<u8>,
    /// The last byte was a carriage return, so that a line feed may follow.
    after_return: bool,
    begun: bool,
    name: String,
    data: String,
    has_data: bool,
}

/// An event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    /// Its type; `message` by default.
    pub name: &'a str,
    /// Its data, without the last line's end.
    pub data: &'a str,
}

/// An event, or a line of one, above the maximum length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event has more than {MAX_EVENT_BYTES} bytes")]
pub struct EventTooLong;

impl EventParser {
    /// Parses the next bytes, and reports each whole event. `on_event` returns true if more events are wanted; the
    /// bytes after the last wanted event are ignored.
    ///
    /// # Errors
    /// [`EventTooLong`].
    pub fn feed(
        &mut self,
        mut bytes: &[u8],
        on_event: &mut dyn FnMut(Event<'_>) -> bool,
    ) -> Result<(), EventTooLong> {
        while let Some(&first) = bytes.first() {
            if std::mem::take(&mut self.after_return) && first == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let Some(end) = bytes.iter().position(|b| matches!(b, b'\n' | b'\r')) else {
                self.line.extend_from_slice(bytes);
                return self.check();
            };
            self.line.extend_from_slice(&bytes[..end]);
            self.check()?;
            self.after_return = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            let line = std::mem::take(&mut self.line);
            let more = self.line(&line, on_event);
            // The memory is kept for the next line.
            self.line = line;
            self.line.clear();
            self.check()?;
            if !more {
                return Ok(());
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<(), EventTooLong> {
        match self.line.len().max(self.data.len()) > MAX_EVENT_BYTES {
            true => Err(EventTooLong),
            false => Ok(()),
        }
    }

    fn line(&mut self, line: &[u8], on_event: &mut dyn FnMut(Event<'_>) -> bool) -> bool {
        let text = String::from_utf8_lossy(line);
        let mut line = &*text;
        if !std::mem::replace(&mut self.begun, true) {
            line = line.strip_prefix('\u{feff}').unwrap_or(line);
        }
        if line.is_empty() {
            return self.dispatch(on_event);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.name),
            "data" => {
                if self.has_data {
                    self.data.push('\n');
                }
                self.has_data = true;
                self.data.push_str(value);
            }
            // A comment, or a field without a meaning here.
            _ => {}
        }
        true
    }

    /// Reports the event, if it has data: without data it is no event.
    fn dispatch(&mut self, on_event: &mut dyn FnMut(Event<'_>) -> bool) -> bool {
        let more = !self.has_data
            || on_event(Event {
                name: match self.name.as_str() {
                    "" => "message",
                    name => name,
                },
                data: &self.data,
            });
        self.name.clear();
        self.data.clear();
        self.has_data = false;
        more
    }
}

/// A request that receives events.
pub(super) struct Listening<'a> {
    wanted: &'a Events,
    /// The text that the data of the last event contains.
    until: Option<String>,
    parser: EventParser,
    times: EventTimes,
    last: Nanos,
    over: bool,
    /// The data of all events, one line each.
    text: String,
    /// The content type of the response.
    kind: Option<Box<str>>,
}

impl<'a> Listening<'a> {
    pub(super) fn new(wanted: &'a Events, until: Option<String>) -> Self {
        Self {
            wanted,
            until,
            parser: EventParser::default(),
            times: EventTimes::default(),
            last: 0,
            over: false,
            text: String::new(),
            kind: None,
        }
    }

    /// Sets the response's content type.
    pub(super) fn has_type(&mut self, value: &[u8]) {
        self.kind = Some(String::from_utf8_lossy(value).into());
    }

    /// Takes the bytes received at this time. Returns true after the last wanted event.
    ///
    /// # Errors
    /// A message, if the bytes are no stream of events, or too long.
    pub(super) fn take(&mut self, bytes: &[u8], at: Nanos) -> Result<bool, String> {
        self.check_type()?;
        let Self {
            wanted,
            until,
            parser,
            times,
            last,
            over,
            text,
            ..
        } = self;
        let fed = parser.feed(bytes, &mut |event| {
            match times.first {
                None => times.first = Some(at),
                Some(_) => times.gaps.push(at.saturating_sub(*last)),
            }
            *last = at;
            if text.len() + event.data.len() < MAX_TEXT_BYTES {
                text.push_str(event.data);
                text.push('\n');
            }
            let named = wanted.named.as_deref() == Some(event.name);
            let held = until
                .as_deref()
                .is_some_and(|text| event.data.contains(text));
            let enough = wanted
                .count
                .is_some_and(|count| times.count() >= count.into());
            *over = named || held || enough;
            !*over && times.count() <= wanted.at_most.into()
        });
        fed.map_err(|error| error.to_string())?;
        if !self.over && self.times.count() > self.wanted.at_most.into() {
            return Err(format!(
                "more than {} events came, and none was the last: say `at_most` if that is meant",
                self.wanted.at_most
            ));
        }
        Ok(self.over)
    }

    fn check_type(&self) -> Result<(), String> {
        let kind = self.kind.as_deref().unwrap_or("no type at all");
        let essence = kind.split(';').next().unwrap_or_default().trim();
        match essence.eq_ignore_ascii_case("text/event-stream") {
            true => Ok(()),
            false => Err(format!("the answer is {kind}, and not text/event-stream")),
        }
    }

    /// Checks the end of the response.
    ///
    /// # Errors
    /// A message, if it is before the last wanted event.
    pub(super) fn finish(&self) -> Result<(), String> {
        self.check_type()?;
        let count = self.times.count();
        if self.over || (self.wanted.takes_all() && count > 0) {
            return Ok(());
        }
        Err(match count {
            0 => "the stream ended without an event".to_owned(),
            1 => "the stream ended after one event, which was not the last".to_owned(),
            _ => format!("the stream ended after {count} events, and none was the last"),
        })
    }

    /// Returns the data of all events.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the arrival times of the events.
    pub(super) fn into_times(self) -> EventTimes {
        self.times
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn events(pieces: &[&[u8]]) -> Vec<(String, String)> {
        let mut parser = EventParser::default();
        let mut found = Vec::new();
        for piece in pieces {
            let mut note = |event: Event<'_>| {
                found.push((event.name.to_owned(), event.data.to_owned()));
                true
            };
            parser.feed(piece, &mut note).unwrap();
        }
        found
    }

    #[track_caller]
    fn check(text: &str, expected: &[(&str, &str)]) {
        let found = events(&[text.as_bytes()]);
        let found: Vec<(&str, &str)> = found
            .iter()
            .map(|(name, data)| (name.as_str(), data.as_str()))
            .collect();
        assert_eq!(found, expected, "{text:?}");
    }

    #[test]
    fn events_are_read_as_the_standard_has_them() {
        check(
            "data: a\n\ndata: b\n\n",
            &[("message", "a"), ("message", "b")],
        );
        check(
            "data: YHOO\ndata: +2\ndata: 10\n\n",
            &[("message", "YHOO\n+2\n10")],
        );
        check(
            ": note\n\ndata\n\ndata\ndata\n\ndata:",
            &[("message", ""), ("message", "\n")],
        );
        check(
            "data:test\n\ndata: test\n\ndata:  two\n\n",
            &[
                ("message", "test"),
                ("message", "test"),
                ("message", " two"),
            ],
        );
        check(
            "\u{feff}event: add\r\ndata: 1\r\rid: 7\nretry: 3\n\n",
            &[("add", "1")],
        );
        check("event: gone\n\ndata: 2\n\n", &[("message", "2")]);
    }

    #[test]
    fn nothing_longer_than_the_limit_is_gathered() {
        let mut parser = EventParser::default();
        let long = vec![b'x'; MAX_EVENT_BYTES + 1];
        assert_eq!(parser.feed(&long, &mut |_| true), Err(EventTooLong));
        let mut parser = EventParser::default();
        let line = format!("data: {}\n", "x".repeat(1000));
        let fed = (0..2000).try_for_each(|_| parser.feed(line.as_bytes(), &mut |_| true));
        assert_eq!(fed, Err(EventTooLong));
    }

    fn wanted(until: Option<&str>, count: Option<u32>) -> (Events, Option<String>) {
        let events = Events {
            until: until.map(lab_workload::Template::literal),
            named: None,
            count,
            at_most: 4,
        };
        (events, until.map(str::to_owned))
    }

    #[test]
    fn a_listener_stops_at_the_last_and_tells_when_they_came() {
        let (events, until) = wanted(Some("[DONE]"), None);
        let mut listening = Listening::new(&events, until);
        listening.has_type(b"text/event-stream; charset=utf-8");
        assert_eq!(listening.take(b"data: 1\n\nda", 100), Ok(false));
        assert!(listening.finish().is_err());
        assert_eq!(listening.take(b"ta: [DONE]\n\ndata: 3\n\n", 140), Ok(true));
        assert_eq!(
            (listening.finish(), listening.text()),
            (Ok(()), "1\n[DONE]\n")
        );
        let times = listening.into_times();
        assert_eq!((times.first, times.gaps), (Some(100), vec![40]));
    }

    #[test]
    fn what_is_no_stream_or_too_much_of_one_is_said() {
        let (events, _) = wanted(None, Some(2));
        let mut listening = Listening::new(&events, None);
        listening.has_type(b"application/json");
        assert!(
            listening
                .take(b"{}", 1)
                .unwrap_err()
                .contains("application/json")
        );
        let (events, until) = wanted(Some("never"), None);
        let mut listening = Listening::new(&events, until);
        listening.has_type(b"text/event-stream");
        let said = listening.take("data: x\n\n".repeat(9).as_bytes(), 1);
        assert!(said.unwrap_err().starts_with("more than 4 events"));
    }

    proptest! {
        #[test]
        fn pieces_make_the_same_events(
            text in "(data|event|id|:|\u{feff}|x)?[:a-z \r\n]{0,60}", cut in 0usize..70,
        ) {
            let bytes = text.as_bytes();
            let cut = cut.min(bytes.len());
            prop_assert_eq!(events(&[bytes]), events(&[&bytes[..cut], &bytes[cut..]]));
        }

        #[test]
        fn printed_events_read_back(all in proptest::collection::vec(("[a-z]{1,5}", "[^\r\n]{0,9}(\n[^\r\n]{0,9})?"), 0..5)) {
            let mut text = String::new();
            for (name, data) in &all {
                text.push_str(&format!("event: {name}\n"));
                for line in data.split('\n') {
                    text.push_str(&format!("data: {line}\n"));
                }
                text.push('\n');
            }
            prop_assert_eq!(events(&[text.as_bytes()]), all);
        }
    }
}
