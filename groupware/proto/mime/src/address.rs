//! People in messages: addresses with their names.

use std::borrow::Cow;

use mail_parser::{Addr, Address};
use serde::{Deserialize, Serialize};

use groupware_text::{is_deceptive, shortened};

use crate::{MimeError, limits};

/// A person in Domino's form.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Person {
    /// The name of the address.
    #[serde(
        rename = "displayName",
        default,
        skip_serializing_if = "String::is_empty"
    )]
    pub name: String,
    /// The address.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub email: String,
}

impl Person {
    /// An address without a name.
    pub fn at(email: impl Into<String>) -> Self {
        Self {
            name: String::new(),
            email: email.into(),
        }
    }

    /// The text to show for the person. A sender can choose any name: one that looks like an
    /// address is not shown in place of the address.
    pub fn shown(&self) -> &str {
        let is_address = || self.name.contains(['@', '\u{ff20}', '\u{fe6b}']);
        match self.name.trim().is_empty() || (is_address() && !self.email.is_empty()) {
            true => &self.email,
            false => &self.name,
        }
    }

    /// Rejects a person that can't be written in a head.
    pub fn check(&self) -> Result<(), MimeError> {
        check_text("A name", &self.name, limits::NAME_BYTES)?;
        if is_address(&self.email) {
            return Ok(());
        }
        let shown = shortened(&self.email);
        let shown: String = shown.chars().filter(|c| !c.is_control()).collect();
        Err(MimeError::Malformed(format!("Not an address: {shown:?}.")))
    }
}

/// Returns true for printable ASCII without characters that end an address in a head.
pub fn is_address(text: &str) -> bool {
    let (local, domain) = text.rsplit_once('@').unwrap_or((text, "x"));
    let plain = |byte: u8| byte.is_ascii_graphic() && !b"<>()[],;:\\\"@ ".contains(&byte);
    text.len() <= limits::ADDRESS_BYTES
        && !local.is_empty()
        && !domain.is_empty()
        && local.bytes().chain(domain.bytes()).all(plain)
}

/// Rejects a text that is too long for a head or has control characters, such as line breaks.
pub fn check_text(what: &str, text: &str, most: usize) -> Result<(), MimeError> {
    if text.len() > most {
        let message = format!("{what} has at most {most} bytes.");
        return Err(MimeError::Malformed(message));
    }
    if text.chars().any(char::is_control) {
        let message = format!("{what} can't have control characters, such as line breaks.");
        return Err(MimeError::Malformed(message));
    }
    Ok(())
}

/// Returns the people of an address field, with groups expanded, at most so many.
pub fn people(address: Option<&Address<'_>>, most: usize) -> Vec<Person> {
    let mut found = Vec::new();
    match address {
        None => {}
        Some(Address::List(list)) => add(list, &mut found),
        Some(Address::Group(groups)) => {
            for group in groups {
                add(&group.addresses, &mut found);
            }
        }
    }
    found.truncate(most);
    found
}

/// Adds the people of a list. A text before a comma that is no address is the beginning of the next
/// person's unquoted name: `Quay, Ben <ben@q.example>`.
fn add(list: &[Addr<'_>], found: &mut Vec<Person>) {
    let mut names: Vec<Person> = Vec::new();
    for person in list {
        let mut person = Person {
            name: cut(
                person.name.as_deref().unwrap_or_default(),
                limits::NAME_BYTES,
            )
            .into_owned(),
            email: cut(
                without_route(person.address.as_deref().unwrap_or_default()),
                limits::ADDRESS_BYTES,
            )
            .into_owned(),
        };
        if person == Person::default() {
            continue;
        }
        if person.email.is_empty() {
            names.push(person);
            continue;
        }
        if !person.name.is_empty() && !names.is_empty() {
            let names = names.drain(..).map(|it| it.name).chain([person.name]);
            let name = names.collect::<Vec<_>>().join(", ");
            person.name = cut(&name, limits::NAME_BYTES).into_owned();
        }
        found.append(&mut names);
        found.push(person);
    }
    found.append(&mut names);
}

/// Strips the source route from an address (RFC 5322, 4.4).
fn without_route(address: &str) -> &str {
    match address
        .strip_prefix('@')
        .and_then(|route| route.split_once(':'))
    {
        Some((_, address)) if address.contains('@') => address,
        _ => address,
    }
}

/// Returns a head's text in one line without deceptive characters, truncated at a character.
pub fn cut(text: &str, most: usize) -> Cow<'_, str> {
    let clean = text.len() <= most && !text.chars().any(|it| it.is_control() || is_deceptive(it));
    if clean {
        return Cow::Borrowed(text);
    }
    let mut kept = String::with_capacity(text.len().min(most));
    for letter in text.chars().filter(|letter| !is_deceptive(*letter)) {
        let letter = if letter.is_control() { ' ' } else { letter };
        if kept.len() + letter.len_utf8() > most {
            break;
        }
        kept.push(letter);
    }
    Cow::Owned(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_checked() {
        for good in ["ada", "ada@localhost", "a.b+c@x-y.org", "o'hara@x"] {
            assert!(is_address(good), "{good}");
        }
        for bad in [
            "",
            "@",
            "a@",
            "@x",
            "a b@x",
            "a@x\r\nBcc: b",
            "<a@x>",
            "a,b",
            "ä@x",
            "a@b@c",
        ] {
            assert!(!is_address(bad), "{bad}");
        }
        assert!(!is_address(&"a".repeat(400)));
    }

    #[test]
    fn no_name_is_shown_as_an_address() {
        let check = |name: &str, email: &str, expected: &str| {
            let (name, email) = (name.to_owned(), email.to_owned());
            assert_eq!(Person { name, email }.shown(), expected);
        };
        check("Ada", "ada@x", "Ada");
        check("", "ada@x", "ada@x");
        check(" ", "ada@x", "ada@x");
        check("boss@here", "eve@x", "eve@x");
        check("boss\u{ff20}here", "eve@x", "eve@x");
        check("boss@here", "", "boss@here");
    }

    #[test]
    fn texts_are_cut_at_a_character_and_kept_in_one_line() {
        assert_eq!(cut("aéé", 4), "aé");
        assert_eq!(cut("a\r\nb", 9), "a  b");
        assert_eq!(cut("plain", 9), "plain");
    }

    fn found(field: &str) -> String {
        let message = format!("From: {field}\r\n\r\n");
        let head = crate::Head::of(message.as_bytes());
        let parsed = head.parse().unwrap();
        let all = people(parsed.from(), 9);
        let all = all.iter().map(|it| format!("{} <{}>", it.name, it.email));
        all.collect::<Vec<_>>().join(" | ")
    }

    #[test]
    fn names_with_commas_find_their_address() {
        for (field, expected) in [
            ("Quay, Ben <ben@q.example>", "Quay, Ben <ben@q.example>"),
            (
                "Quay, Ben, Dr. <ben@q.example>",
                "Quay, Ben, Dr. <ben@q.example>",
            ),
            ("\"Quay, Ben\" <ben@q.example>", "Quay, Ben <ben@q.example>"),
            (
                "Quay, Ben <ben@q.example>, Pier, Ada <ada@p.example>",
                "Quay, Ben <ben@q.example> | Pier, Ada <ada@p.example>",
            ),
            (
                "ben@q.example, Ada <ada@p.example>",
                " <ben@q.example> | Ada <ada@p.example>",
            ),
            ("Quay, ben@q.example", "Quay <> |  <ben@q.example>"),
            ("Quay, Ben", "Quay <> | Ben <>"),
            (
                "crew: Quay, Ben <ben@q.example>;",
                "Quay, Ben <ben@q.example>",
            ),
            (
                "=?utf-8?Q?Quay=2C_Ben?= <ben@q.example>",
                "Quay, Ben <ben@q.example>",
            ),
            ("Ben <@relay.example:ben@q.example>", "Ben <ben@q.example>"),
            ("<@a.example,@b.example:ben@q.example>", " <ben@q.example>"),
            (
                "=?utf-8?B?4oCubW9jLmtuYWJAZWNpdnJlcw==?= <evil@bad.example>",
                "moc.knab@ecivres <evil@bad.example>",
            ),
        ] {
            assert_eq!(found(field), expected, "{field}");
        }
    }

    #[test]
    fn controls_of_the_order_are_taken_out() {
        assert_eq!(cut("invoice \u{202e}gnp.exe", 99), "invoice gnp.exe");
        assert_eq!(cut("a\u{2066}b\u{2069}c\u{200f}", 99), "abc");
        assert_eq!(cut("Bo\u{200b}ss\u{feff}", 99), "Boss");
        assert_eq!(cut("שלום", 99), "שלום");
    }
}
