//! Objects of iTIP messages (RFC 5546) as texts: extracted, joined, and replied to.

use crate::edit::fold;
use crate::line::{Lines, Property};
use crate::object::Object;
use crate::split::split;

/// Returns the text of an object with its calendar's lines; `None` if it exceeds so many bytes.
pub fn whole(object: &Object<'_>, most_bytes: usize) -> Option<String> {
    if object.written_bytes() > most_bytes {
        return None;
    }
    let mut bytes = Vec::with_capacity(object.written_bytes());
    object.write(&mut bytes);
    String::from_utf8(bytes).ok()
}

/// Joins two objects of one UID, with the calendar's lines of the first; `None` if they can't be
/// joined, or exceed so many bytes.
pub fn joined(first: &str, second: &str, most_bytes: usize) -> Option<String> {
    let both = format!("{first}\r\n{second}");
    let (objects, faults) = split(both.as_bytes()).ok()?;
    match &objects[..] {
        [object] if faults.is_empty() => whole(object, most_bytes),
        _ => None,
    }
}

/// The reply of an attendee.
#[derive(Clone, Copy)]
pub struct Answer<'a> {
    /// Returns true for an address, as in the object, of the attendee.
    pub is_of: &'a dyn Fn(&str) -> bool,
    /// The attendee's PARTSTAT.
    pub word: &'a str,
}

/// Returns the object without its message's method, and with this reply at the attendee.
pub fn answered(object: &str, answer: Option<Answer<'_>>) -> String {
    let mut written = Vec::with_capacity(object.len() + 64);
    let mut level = 0_usize;
    for line in Lines::new(object.as_bytes()) {
        let text = line.unfolded();
        let property = Property::read(&text);
        if property.is("BEGIN") {
            level += 1;
        } else if property.is("END") {
            level = level.saturating_sub(1);
        }
        if level == 1 && property.is("METHOD") {
            continue;
        }
        let is_of = |answer: &Answer<'_>| {
            let value = String::from_utf8_lossy(property.value);
            level == 2 && property.is("ATTENDEE") && (answer.is_of)(value.trim())
        };
        let Some(answer) = answer.filter(is_of) else {
            written.extend_from_slice(line.bytes);
            continue;
        };
        let mut anew = property.name.to_vec();
        let is_kept = |name: &[u8]| !name.eq_ignore_ascii_case(b"PARTSTAT");
        for (_, parameter) in property.parameters().filter(|(name, _)| is_kept(name)) {
            anew.push(b';');
            anew.extend_from_slice(parameter);
        }
        anew.extend_from_slice(format!(";PARTSTAT={}:", answer.word).as_bytes());
        anew.extend_from_slice(property.value);
        fold(&anew, b"\r\n", &mut written);
    }
    String::from_utf8_lossy(&written).into_owned()
}
