//! Parses the JSON of an event in exactly the form that we write: the members in order, without whitespace. This takes
//! a fourth of the work of a general parser, which handles any other form.

use std::borrow::Cow;

use jiff::civil::DateTime;

use crate::event::is_default;
use crate::written::plain;
use crate::{
    Answer, Attendee, Class, Details, Event, Moment, Organizer, Role, Status, Transparency,
    UserType, time,
};

/// The number of attendees to allocate room for in advance.
const USUAL_ATTENDEES: usize = 8;

/// The rest of a text.
pub(super) struct Rest<'a>(pub(super) &'a str);

impl<'a> Rest<'a> {
    /// Skips a required text.
    pub(super) fn pass(&mut self, text: &str) -> Option<()> {
        self.0 = self.0.strip_prefix(text)?;
        Some(())
    }

    /// Skips an optional text; returns whether it was there.
    pub(super) fn passes(&mut self, text: &str) -> bool {
        self.pass(text).is_some()
    }

    /// Parses a text after its opening quotation mark, including the closing one.
    pub(super) fn text(&mut self) -> Option<Cow<'a, str>> {
        let (all, length) = (self.0, plain(self.0.as_bytes()));
        let (text, rest) = all.split_at_checked(length)?;
        if let Some(rest) = rest.strip_prefix('"') {
            self.0 = rest;
            return Some(Cow::Borrowed(text));
        }
        self.escaped_text(length).map(Cow::Owned)
    }

    /// The same for a text with escapes, from here on.
    fn escaped_text(&mut self, mut at: usize) -> Option<String> {
        let bytes = self.0.as_bytes();
        loop {
            match bytes.get(at)? {
                b'"' => break,
                // Each escape has at least one more byte.
                b'\\' => at += 2,
                _ => return None,
            }
            at += plain(bytes.get(at..)?);
        }
        let (text, rest) = self.0.split_at_checked(at)?;
        let text = serde_json::from_str(&["\"", text, "\""].concat()).ok()?;
        self.0 = rest.strip_prefix('"')?;
        Some(text)
    }

    pub(super) fn owned(&mut self) -> Option<String> {
        self.text().map(Cow::into_owned)
    }

    /// Parses a text, if its name is next.
    fn any(&mut self, name: &str) -> Option<Option<String>> {
        match self.passes(name) {
            true => self.owned().map(Some),
            false => Some(None),
        }
    }

    /// Parses an enumerated word, if its name is next; the default is not written.
    fn word<T: Default + PartialEq>(
        &mut self,
        name: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        if !self.passes(name) {
            return Some(T::default());
        }
        read(&self.text()?).filter(|it| !is_default(it))
    }

    /// Parses a number without a sign.
    pub(super) fn number<T: TryFrom<u64>>(&mut self) -> Option<T> {
        /// All of them fit.
        const MOST_DIGITS: usize = 18;
        let digits = self.0.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = self.0.split_at_checked(digits)?;
        let is_one = number == "0" || !number.starts_with('0');
        if !is_one || !(1..=MOST_DIGITS).contains(&digits) || rest.starts_with(['.', 'e', 'E']) {
            return None;
        }
        self.0 = rest;
        let sum = |sum: u64, digit: u8| sum * 10 + u64::from(digit - b'0');
        T::try_from(number.bytes().fold(0, sum)).ok()
    }
}

/// Parses an event; `None` if it differs from the form that we write.
pub(super) fn event(rest: &mut Rest<'_>) -> Option<Event> {
    rest.pass(r#"{"id":""#)?;
    let uid = rest.owned()?;
    let sequence = match rest.passes(r#","sq":"#) {
        true => rest.number().filter(|it| !is_default(it))?,
        false => 0,
    };
    rest.pass(r#","cr":"#)?;
    let created = rest.number()?;
    rest.pass(r#","mo":"#)?;
    let modified = rest.number()?;
    let organizer = organizer(rest)?;
    let attendees = match rest.passes(r#","at":["#) {
        true => attendees(rest)?,
        false => Vec::new(),
    };
    let details = details(rest)?;
    rest.pass("}")?;
    Some(Event {
        uid,
        sequence,
        created,
        modified,
        organizer,
        attendees,
        details,
    })
}

fn organizer(rest: &mut Rest<'_>) -> Option<Organizer> {
    rest.pass(r#","or":{"u":""#)?;
    let user = rest.owned()?;
    rest.pass(r#","m":""#)?;
    let email = rest.owned()?;
    let display_name = rest.any(r#","n":""#)?;
    rest.pass("}")?;
    Some(Organizer {
        user,
        email,
        display_name,
    })
}

fn attendees(rest: &mut Rest<'_>) -> Option<Vec<Attendee>> {
    let mut attendees = Vec::with_capacity(USUAL_ATTENDEES);
    loop {
        attendees.push(attendee(rest)?);
        if rest.passes("]") {
            return Some(attendees);
        }
        rest.pass(",")?;
    }
}

fn attendee(rest: &mut Rest<'_>) -> Option<Attendee> {
    let (user, email) = match rest.passes(r#"{"u":""#) {
        true => {
            let user = rest.owned()?;
            rest.pass(r#","m":""#)?;
            (Some(user), rest.owned()?)
        }
        false => {
            rest.pass(r#"{"m":""#)?;
            (None, rest.owned()?)
        }
    };
    let attendee = Attendee {
        user,
        email,
        display_name: rest.any(r#","n":""#)?,
        role: rest.word(r#","r":""#, Role::of_word)?,
        user_type: rest.word(r#","k":""#, UserType::of_word)?,
        status: rest.word(r#","a":""#, Answer::of_word)?,
        rsvp: rest.passes(r#","q":true"#),
        delegated_to: rest.any(r#","dt":""#)?,
        delegated_from: rest.any(r#","df":""#)?,
        member: rest.any(r#","g":""#)?,
        sent_by: rest.any(r#","s":""#)?,
        dir: rest.any(r#","d":""#)?,
    };
    rest.pass("}")?;
    Some(attendee)
}

fn details(rest: &mut Rest<'_>) -> Option<Details> {
    rest.pass(r#","in":{"#)?;
    let mut texts = [const { None }; 3];
    let (mut comma, names) = ("", [r#""sm":""#, r#""lo":""#, r#""de":""#]);
    for (name, text) in names.into_iter().zip(&mut texts) {
        let before = rest.0;
        if rest.passes(comma) && rest.passes(name) {
            *text = Some(rest.owned()?);
            comma = ",";
        } else {
            rest.0 = before;
        }
    }
    let [summary, location, description] = texts;
    rest.pass(comma)?;
    rest.pass(r#""st":"#)?;
    let start = moment(rest)?;
    rest.pass(r#","en":"#)?;
    let end = moment(rest)?;
    // Properties of other vendors are unbounded: the general parser handles them.
    let details = Details {
        summary,
        location,
        description,
        start,
        end,
        class: rest.word(r#","cl":""#, Class::of_word)?,
        transparency: rest.word(r#","tr":""#, Transparency::of_word)?,
        status: rest.word(r#","ss":""#, Status::of_word)?,
        priority: None,
        categories: Vec::new(),
        url: None,
        extra: Vec::new(),
        alarm: None,
        source: Vec::new(),
    };
    rest.pass("}")?;
    Some(details)
}

fn moment(rest: &mut Rest<'_>) -> Option<Moment> {
    let moment = if rest.passes(r#"{"utc":""#) {
        Moment::Utc(wall_clock(&rest.text()?)?)
    } else if rest.passes(r#"{"floating":""#) {
        Moment::Floating(wall_clock(&rest.text()?)?)
    } else if rest.passes(r#"{"day":""#) {
        Moment::Day(time::parse_date(&rest.text()?)?)
    } else {
        rest.pass(r#"{"zoned":{"local":""#)?;
        let local = wall_clock(&rest.text()?)?;
        rest.pass(r#","tzid":""#)?;
        let tzid = rest.owned()?;
        rest.pass(r#","instant":"#)?;
        let instant = rest.number()?;
        rest.pass("}")?;
        Moment::Zoned {
            local,
            tzid,
            instant,
        }
    };
    rest.pass("}")?;
    Some(moment)
}

/// Rejects rare values: years before the first, leap seconds, fractional seconds.
fn wall_clock(text: &str) -> Option<DateTime> {
    let (date, clock) = text.split_at_checked(10)?;
    let clock = clock.strip_prefix('T')?;
    let clock = time::parse_time(clock).filter(|_| !clock.ends_with("60"))?;
    Some(time::parse_date(date)?.to_datetime(clock))
}
