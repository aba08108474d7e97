//! People as typed into a field, and as suggested for it.

use groupware_calendar::Attendee;
use groupware_people::Directory;
use groupware_service::Service;
use maud::{Markup, html};
use serde_json::{Value, json};

use crate::field::Wrong;
use crate::people::entries;
use crate::visitor::SignedIn;

/// Most users that the page itself suggests; beyond, the script requests matching ones.
const MOST_OFFERED: usize = 100;

/// Formats a person for a field.
pub(crate) fn written(person: &Attendee) -> String {
    match person.display_name.as_deref() {
        Some(name) if !name.contains([',', ';', '<', '>', '"']) && !name.is_empty() => {
            format!("{name} <{}>", person.email)
        }
        _ => person.email.clone(),
    }
}

/// Parses `ann, Bob Baker <bob@localhost>; eve` into attendees of the calendar's JSON.
pub(crate) fn read(service: &Service, text: &str, wrong: &mut Wrong) -> Vec<Value> {
    let mut people = Vec::new();
    for (name, address) in entries(text) {
        if let Some(text) = unknown(service, address) {
            wrong.add("people", text);
        }
        // A local user, by any name, has the address of the directory.
        let user = service.auth.directory().resolve(address);
        let address = match &user {
            Some(user) => service.auth.directory().email(user.name.key()),
            None => address.to_owned(),
        };
        people.push(match name.is_empty() {
            true => json!({ "email": address, "rsvp": true }),
            false => json!({ "email": address, "displayName": name, "rsvp": true }),
        });
    }
    people
}

/// The error for an address that can't exist.
pub(crate) fn unknown(service: &Service, address: &str) -> Option<String> {
    // If the store can't be read now, the check is repeated when the entry is stored.
    if !matches!(service.auth.people().user(address), Ok(None)) {
        return None;
    }
    let shown: String = address.chars().take(80).collect();
    match service.auth.directory().local_name(address) {
        Some(_) => Some(format!("There is no user called “{shown}” here.")),
        None if is_address(address) => None,
        None => Some(format!("“{shown}” is no address.")),
    }
}

fn is_address(text: &str) -> bool {
    let Some((name, domain)) = text.rsplit_once('@') else {
        return false;
    };
    !name.is_empty()
        && !domain.is_empty()
        && text.len() <= 255
        && !text.contains(|letter: char| letter.is_whitespace() || letter.is_control())
}

/// All users of a small server, for the browser's completion; none of a large one.
pub(crate) fn directory_list(service: &Service, visitor: &SignedIn) -> Markup {
    let directory = service.auth.directory();
    let mut names = match directory.len() <= MOST_OFFERED {
        true => directory.keys(),
        false => Vec::new(),
    };
    names.sort_unstable();
    html! {
        datalist #people-list {
            @for name in names.iter().filter(|name| &***name != visitor.mailbox()) {
                option value=(name) {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_read_as_they_are_written() {
        let person = |name: &str| Attendee {
            email: "ann@x.y".into(),
            display_name: Some(name.into()),
            ..Attendee::default()
        };
        let back = |name| {
            let text = written(&person(name));
            let (name, address) = entries(&text).next().unwrap();
            (name.to_owned(), address.to_owned())
        };
        let pair = |name: &str, address: &str| (name.to_owned(), address.to_owned());
        assert_eq!(back("Ann Lee"), pair("Ann Lee", "ann@x.y"));
        assert_eq!(back("Lee, Ann"), pair("", "ann@x.y"));
    }

    #[test]
    fn addresses_have_two_parts() {
        assert!(is_address("a@b"));
        for bad in ["a", "@b", "a@", "a b@c", "a@b\nc"] {
            assert!(!is_address(bad), "{bad}");
        }
    }
}
