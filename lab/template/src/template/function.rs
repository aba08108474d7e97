//! The functions of the template language, defined once for both evaluators.

use std::fmt::Write as _;
use std::sync::LazyLock;

use jiff::civil::Date;
use lab_filters::{Draw, Drawn, Person};

use crate::scope::UserScope;
use crate::timing::ChoiceStream;
use lab_filters::text_list::JsonKind;

/// The arguments of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The name of a captured value or list.
    List,
    /// Whole numbers, with their count.
    Numbers(usize),
    /// A text of values with shares.
    Shares,
    /// Two numbers of any kind.
    Draw,
    /// The name of an environment variable.
    Given,
    /// The name of a counter that users share.
    Counter,
    /// The format of a time, and an optional offset.
    Time,
    /// Values of any kind.
    Values,
    /// The name of a key.
    Key,
}

/// A function of the template language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Function {
    /// Its name in calls.
    pub name: &'static str,
    /// The usage text in an error's help.
    pub usage: &'static str,
    /// Its arguments.
    pub kind: Kind,
    pub(crate) call: Call,
}

/// The function's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    Take,
    Pick,
    Pad,
    Neighbour,
    Uuid,
    Date,
    DateIn,
    MonthStart,
    MonthEnd,
    IntIn,
    TextOfSize,
    Profile,
    Env,
    Secret,
    Now,
    NowMs,
    NowUs,
    NowText,
    RandomText,
    RandomLetters,
    RandomDigits,
    RandomHex,
    Jwt,
    Next,
    Key,
    Person(Person),
    Words,
    Weighted,
    Normal,
    Zipf,
}

const fn function(name: &'static str, usage: &'static str, kind: Kind, call: Call) -> Function {
    Function {
        name,
        usage,
        kind,
        call,
    }
}

/// All functions, in the order of the documentation.
pub const FUNCTIONS: &[Function] = &[
    function(
        "take",
        "take(list): the first entry, which is removed",
        Kind::List,
        Call::Take,
    ),
    function(
        "pick",
        "pick(list): a random entry, which stays; also pick(['a', 'b'])",
        Kind::List,
        Call::Pick,
    ),
    function(
        "pad",
        "pad(number, width): with leading zeros",
        Kind::Numbers(2),
        Call::Pad,
    ),
    function(
        "neighbour",
        "neighbour(k): the index of the user k places on in the ring of all users",
        Kind::Numbers(1),
        Call::Neighbour,
    ),
    function(
        "uuid",
        "uuid(): a random UUID",
        Kind::Numbers(0),
        Call::Uuid,
    ),
    function(
        "date",
        "date(days): the date that many days after day 0",
        Kind::Numbers(1),
        Call::Date,
    ),
    function(
        "date_in",
        "date_in(from, to): a random date between these days after day 0, both included",
        Kind::Numbers(2),
        Call::DateIn,
    ),
    function(
        "month_start",
        "month_start(days): the first day of the month of that date",
        Kind::Numbers(1),
        Call::MonthStart,
    ),
    function(
        "month_end",
        "month_end(days): the first day after the month of that date",
        Kind::Numbers(1),
        Call::MonthEnd,
    ),
    function(
        "int_in",
        "int_in(from, to): a random whole number, both included",
        Kind::Numbers(2),
        Call::IntIn,
    ),
    function(
        "text_of_size",
        "text_of_size(bytes): filler text",
        Kind::Numbers(1),
        Call::TextOfSize,
    ),
    function(
        "profile",
        "profile('500 B 10%, 2 KB 80%, 10 MB 10%'): one of these sizes in bytes, so that each has \
         its share among the draws of all users, however few they are",
        Kind::Shares,
        Call::Profile,
    ),
    function(
        "env",
        "env('NAME'): the value of an environment variable when the run starts",
        Kind::Given,
        Call::Env,
    ),
    function(
        "secret",
        "secret('NAME'): as env('NAME'), and shown nowhere",
        Kind::Given,
        Call::Secret,
    ),
    function(
        "now",
        "now(): the time of day in seconds since 1970; all of a request have the same",
        Kind::Numbers(0),
        Call::Now,
    ),
    function(
        "now_ms",
        "now_ms(): the same in milliseconds",
        Kind::Numbers(0),
        Call::NowMs,
    ),
    function(
        "now_us",
        "now_us(): the same in microseconds",
        Kind::Numbers(0),
        Call::NowUs,
    ),
    function(
        "now_text",
        "now_text('%Y-%m-%dT%H:%M:%SZ', '+5m'): the time of day in UTC as a text, that much later",
        Kind::Time,
        Call::NowText,
    ),
    function(
        "random_text",
        "random_text(n): so many random letters and digits",
        Kind::Numbers(1),
        Call::RandomText,
    ),
    function(
        "random_letters",
        "random_letters(n): so many random lower-case letters",
        Kind::Numbers(1),
        Call::RandomLetters,
    ),
    function(
        "random_digits",
        "random_digits(n): so many random digits",
        Kind::Numbers(1),
        Call::RandomDigits,
    ),
    function(
        "random_hex",
        "random_hex(n): so many random hexadecimal digits",
        Kind::Numbers(1),
        Call::RandomHex,
    ),
    function(
        "weighted",
        "weighted('a 80%, b 20%'): one of these texts, as often as its share says",
        Kind::Shares,
        Call::Weighted,
    ),
    function(
        "normal",
        "normal(mean, deviation): a random number of this mean and standard deviation",
        Kind::Draw,
        Call::Normal,
    ),
    function(
        "zipf",
        "zipf(n, s): a random whole number from 1 to n, of which k comes as often as 1 ÷ kˢ",
        Kind::Draw,
        Call::Zipf,
    ),
    function(
        "first_name",
        "first_name(): a random first name",
        Kind::Numbers(0),
        Call::Person(Person::FirstName),
    ),
    function(
        "last_name",
        "last_name(): a random last name",
        Kind::Numbers(0),
        Call::Person(Person::LastName),
    ),
    function(
        "full_name",
        "full_name(): a random first and last name",
        Kind::Numbers(0),
        Call::Person(Person::FullName),
    ),
    function(
        "email",
        "email(): a random address of mail, at a domain that nobody has",
        Kind::Numbers(0),
        Call::Person(Person::Email),
    ),
    function(
        "city",
        "city(): a random city",
        Kind::Numbers(0),
        Call::Person(Person::City),
    ),
    function(
        "words",
        "words(n): so many random words",
        Kind::Numbers(1),
        Call::Words,
    ),
    function(
        "jwt",
        "jwt({'sub': 'ada', 'exp': now() + 300}, secret('JWT_KEY'), 'HS256', {'kid': 'a'}): a signed token",
        Kind::Values,
        Call::Jwt,
    ),
    function(
        "next",
        "next('order_no'): the next number of a counter of `shared:`, which no other user has",
        Kind::Counter,
        Call::Next,
    ),
    function(
        "key",
        "key('api'): one of the workload's `keys`, as in `text | hmac(key('api'))` and `jwt(claims, key('api'), 'RS256')`",
        Kind::Key,
        Call::Key,
    ),
];

impl Function {
    /// Returns true if it reads the time of day.
    pub(super) fn is_of_the_clock(&self) -> bool {
        matches!(
            self.call,
            Call::Now | Call::NowMs | Call::NowUs | Call::NowText
        )
    }

    /// Returns true if it draws from the user's stream of choices.
    pub(super) fn draws(&self) -> bool {
        matches!(
            self.call,
            Call::IntIn
                | Call::DateIn
                | Call::Uuid
                | Call::RandomText
                | Call::RandomLetters
                | Call::RandomDigits
                | Call::RandomHex
                | Call::Person(_)
                | Call::Words
        )
    }
}

/// Returns the function called `name`.
pub(crate) fn find(name: &str) -> Option<&'static Function> {
    FUNCTIONS.iter().find(|f| f.name == name)
}

/// Returns true if a text can be the name of an environment variable.
#[must_use]
pub fn is_environment_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 200
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// A function's number, or the kind of the appended value.
pub(crate) enum Outcome {
    Number(i64),
    Text,
    /// A value that is no text in JSON, in JSON form.
    Json,
}

impl From<JsonKind> for Outcome {
    fn from(kind: JsonKind) -> Self {
        match kind {
            JsonKind::Text => Self::Text,
            JsonKind::Json => Self::Json,
        }
    }
}

/// Parses a text as a whole number, for an argument.
pub(crate) fn whole_number(text: &str) -> Result<i64, String> {
    let number = text.trim().parse();
    number.map_err(|_| format!("`{text}` is not a whole number"))
}

/// Calls a function of whole numbers. Text is appended to `out`, a number is returned.
///
/// `numbers` has as many entries as the function's [`Kind::Numbers`] requires.
pub(crate) fn call_numbers(
    call: Call,
    numbers: &[i64],
    scope: &mut UserScope,
    out: &mut String,
) -> Result<Outcome, String> {
    let number = |at: usize| numbers.get(at).copied().unwrap_or(0);
    match call {
        Call::Take | Call::Pick => return Err("it takes the name of a list".into()),
        Call::Weighted
        | Call::Profile
        | Call::Env
        | Call::Secret
        | Call::NowText
        | Call::Jwt
        | Call::Next
        | Call::Key => {
            return Err("it takes a text".into());
        }
        Call::Normal | Call::Zipf => return Err("it takes two numbers".into()),
        Call::Person(person) => person.push(&mut || scope.choice().bits(), out),
        Call::Words => lab_filters::push_words(number(0), &mut || scope.choice().bits(), out)?,
        Call::Now => return Ok(Outcome::Number(scope.now_us() / 1_000_000)),
        Call::NowMs => return Ok(Outcome::Number(scope.now_us() / 1_000)),
        Call::NowUs => return Ok(Outcome::Number(scope.now_us())),
        Call::RandomText => random(scope.choice(), &ALPHANUMERIC[..], number(0), out)?,
        Call::RandomLetters => random(scope.choice(), &ALPHANUMERIC[10..36], number(0), out)?,
        Call::RandomDigits => random(scope.choice(), &ALPHANUMERIC[..10], number(0), out)?,
        Call::RandomHex => random(scope.choice(), &ALPHANUMERIC[..16], number(0), out)?,
        Call::Neighbour => {
            return Ok(Outcome::Number(scope.neighbour(number(0))));
        }
        Call::IntIn => {
            return random_between(scope.choice(), number(0), number(1)).map(Outcome::Number);
        }
        Call::Pad => pad(number(0), number(1), out)?,
        Call::Uuid => uuid(scope.choice(), out),
        Call::Date => write_date(day(scope.base_date(), number(0))?, out),
        Call::DateIn => {
            // Both ends must be dates; otherwise it would fail at random.
            if number(0) <= number(1) {
                day(scope.base_date(), number(0))?;
                day(scope.base_date(), number(1))?;
            }
            let days = random_between(scope.choice(), number(0), number(1))?;
            write_date(day(scope.base_date(), days)?, out);
        }
        Call::MonthStart => write_date(day(scope.base_date(), number(0))?.first_of_month(), out),
        Call::MonthEnd => {
            let last = day(scope.base_date(), number(0))?.last_of_month();
            write_date(day(last, 1)?, out);
        }
        Call::TextOfSize => filler(scope.choice(), number(0), out)?,
    }
    Ok(Outcome::Text)
}

/// Returns a distribution with two parameters.
pub(crate) fn distribution(call: Call, [first, second]: [f64; 2]) -> Result<Draw, String> {
    match call {
        Call::Zipf => Draw::zipf(first, second),
        _ => Draw::normal(first, second),
    }
}

/// Draws the next number of a distribution.
pub(crate) fn draw(of: &Draw, scope: &mut UserScope) -> Drawn {
    of.next(&mut || scope.choice().bits())
}

/// Parses texts with their shares; the error is a sentence.
pub(crate) fn weights(text: &str) -> Result<Weights, String> {
    let value = |value: &str| match value.is_empty() {
        true => Err("there is a share without a text".to_owned()),
        false => Ok(value.into()),
    };
    lab_filters::shares(text, "text", value)
}

/// Texts, each with the end of its share.
pub(crate) type Weights = Vec<(Box<str>, f64)>;

/// Returns one of the texts.
pub(crate) fn weighted<'a>(of: &'a Weights, scope: &mut UserScope) -> &'a str {
    lab_filters::weighted(of, scope.choice().bits()).map_or("", |text| text)
}

/// Digits, then lower-case letters, then upper-case ones.
const ALPHANUMERIC: &[u8; 62] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
const MAX_RANDOM: i64 = 1 << 20;

fn random(choice: &mut ChoiceStream, of: &[u8], n: i64, out: &mut String) -> Result<(), String> {
    if !(0..=MAX_RANDOM).contains(&n) {
        return Err(format!("{n} is not within 0 to {MAX_RANDOM}"));
    }
    let drawn = (0..n).map(|_| char::from(of[choice.below(of.len() as u64) as usize]));
    out.extend(drawn);
    Ok(())
}

/// Formats a time in µs since 1970 in UTC, after adding the offset.
pub(crate) fn now_text(now_us: i64, format: &str, offset: Option<&str>) -> Result<String, String> {
    let offset: jiff::SignedDuration = match offset.map(str::parse) {
        None => jiff::SignedDuration::ZERO,
        Some(read) => read.map_err(|_| "an offset is written as `+5m` or `-2h`".to_owned())?,
    };
    let time = jiff::Timestamp::from_microsecond(now_us).and_then(|now| now.checked_add(offset));
    let time = time.map_err(|error| format!("the offset is too large: {error}"))?;
    jiff::fmt::strtime::format(format, time)
        .map_err(|error| format!("`{format}` is no format of a time: {error}"))
}

fn pad(number: i64, width: i64, out: &mut String) -> Result<(), String> {
    if !(0..=100).contains(&width) {
        return Err(format!("a width of {width} is not within 0 to 100"));
    }
    // Writing to a string can't fail.
    let _ = write!(out, "{number:0width$}", width = width as usize);
    Ok(())
}

fn random_between(choice: &mut ChoiceStream, from: i64, to: i64) -> Result<i64, String> {
    if from > to {
        return Err(format!("{from} is greater than {to}"));
    }
    let span = to.abs_diff(from).saturating_add(1);
    Ok(from.wrapping_add_unsigned(choice.below(span)))
}

/// Appends a version 4 UUID from the user's own stream, so that a trial is repeatable.
fn uuid(choice: &mut ChoiceStream, out: &mut String) {
    let bits = (u128::from(choice.bits()) << 64) | u128::from(choice.bits());
    let id = uuid::Builder::from_random_bytes(bits.to_be_bytes()).into_uuid();
    let mut buffer = uuid::Uuid::encode_buffer();
    out.push_str(id.hyphenated().encode_lower(&mut buffer));
}

fn day(base: Date, days: i64) -> Result<Date, String> {
    let out_of_range = || format!("{days} days after {base} is beyond the calendar");
    let days = i32::try_from(days).map_err(|_| out_of_range())?;
    let span = jiff::Span::new()
        .try_days(days)
        .map_err(|_| out_of_range())?;
    base.checked_add(span).map_err(|_| out_of_range())
}

fn write_date(date: Date, out: &mut String) {
    // Writing to a string can't fail.
    let _ = write!(
        out,
        "{:04}-{:02}-{:02}",
        date.year(),
        date.month(),
        date.day()
    );
}

/// From this size on, filler is copied from a pool: drawing it would cost more than sending it.
const POOLED_BYTES: usize = 4096;
const POOL_BYTES: usize = 1 << 20;
/// Extra capacity for text around a filler, to avoid reallocating the whole filler.
const ROUND_IT_BYTES: usize = 1024;

/// The filler pool, drawn once.
static POOL: LazyLock<String> = LazyLock::new(|| {
    let mut pool = String::new();
    draw_filler(&mut ChoiceStream::new(0, 0, 0), POOL_BYTES, &mut pool);
    pool
});

/// Appends letters, digits, and spaces without a pattern that a compressor would detect.
fn filler(choice: &mut ChoiceStream, bytes: i64, out: &mut String) -> Result<(), String> {
    let limit = crate::render_error::MAX_RENDERED_BYTES as i64;
    if !(0..=limit).contains(&bytes) {
        return Err(format!("{bytes} bytes is not within 0 to {limit}"));
    }
    let mut left = bytes as usize;
    out.reserve(left + ROUND_IT_BYTES);
    if left < POOLED_BYTES {
        draw_filler(choice, left, out);
        return Ok(());
    }
    // A random head makes each filler unique.
    draw_filler(choice, 20, out);
    left -= 20;
    let mut from = choice.below(POOL_BYTES as u64) as usize;
    while left > 0 {
        let part = left.min(POOL_BYTES - from);
        out.push_str(&POOL[from..from + part]);
        left -= part;
        from = 0;
    }
    Ok(())
}

fn draw_filler(choice: &mut ChoiceStream, bytes: usize, out: &mut String) {
    const LETTERS: &[u8; 64] = b"abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ 0123456789";
    let mut left = bytes;
    while left > 0 {
        let mut bits = choice.bits();
        for _ in 0..left.min(10) {
            out.push(char::from(LETTERS[(bits & 63) as usize]));
            bits >>= 6;
        }
        left -= left.min(10);
    }
}
