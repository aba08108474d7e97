//! Converts a file to requests.

use groupware_proto_ical::split;

use crate::text;

/// The maximum size of an object that a server accepts.
const OBJECT_BYTES: usize = 256 << 10;
/// The approximate size of a request in bytes, and its maximum number of objects.
const BODY_BYTES: usize = 1 << 20;
const OBJECTS: usize = 200;

/// The next step of the import of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Send these objects.
    Send(Request),
    /// Report that a part is skipped: its position, and the reason.
    LeaveOut(String),
    /// Report a note about the file.
    Note(String),
}

/// Objects to send to a server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Request {
    /// The body: calendars in the format iCalendar, one after another.
    pub body: Vec<u8>,
    /// The position of each object: the file, and the line.
    pub(crate) places: Vec<String>,
}

/// Calls `step` for each step of the import of a file with this name and these bytes, until a step fails.
///
/// # Errors
/// The error of `step`.
pub fn each_step<E>(
    name: &str,
    bytes: &[u8],
    mut step: impl FnMut(Step) -> Result<(), E>,
) -> Result<(), E> {
    let file = text::read(bytes);
    if let Some(encoding) = file.encoding {
        step(Step::Note(format!(
            "{name}: it is not UTF-8, and was read as {encoding}"
        )))?;
    }
    let (objects, faults) = match split(&file.bytes) {
        Ok(found) => found,
        Err(damage) => {
            let why = format!("{name}: {damage}; nothing of it was imported");
            return step(Step::LeaveOut(why));
        }
    };
    for fault in faults {
        step(Step::LeaveOut(format!("{name}: {fault}")))?;
    }
    let mut request = Request::default();
    for object in &objects {
        let place = format!("{name}, line {}", object.line);
        let before = request.body.len();
        object.write(&mut request.body);
        let length = request.body.len() - before;
        if length > OBJECT_BYTES {
            request.body.truncate(before);
            let (has, most) = (length >> 10, OBJECT_BYTES >> 10);
            step(Step::LeaveOut(format!(
                "{place}: it has {has} KiB, and {most} KiB are the most that is kept: take \
                 attachments out of it"
            )))?;
            continue;
        }
        // Each object begins on a new line.
        if !request.body.ends_with(b"\n") {
            request.body.extend_from_slice(b"\r\n");
        }
        request.places.push(place);
        if request.body.len() >= BODY_BYTES || request.places.len() >= OBJECTS {
            step(Step::Send(std::mem::take(&mut request)))?;
        }
    }
    match request.places.is_empty() {
        true => Ok(()),
        false => step(Step::Send(request)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_a_bounded_size_and_all_objects() {
        let event = |number: usize, bytes: usize| {
            let text = "x".repeat(bytes);
            format!("BEGIN:VEVENT\nUID:{number}\nX-TEXT:{text}\nEND:VEVENT\n")
        };
        let sizes = [
            200_000, 200_000, 300_000, 200_000, 200_000, 200_000, 200_000,
        ];
        let large: Vec<String> = (0..7).map(|it| event(it, sizes[it])).collect();
        let small: Vec<String> = (7..300).map(|it| event(it, 1)).collect();
        let events = [large, small].concat().concat();
        let file = format!("BEGIN:VCALENDAR\n{events}END:VCALENDAR");
        let (mut sent, mut left_out) = (Vec::new(), Vec::new());
        let done: Result<(), ()> = each_step("f", file.as_bytes(), |step| {
            match step {
                Step::Send(request) => {
                    assert!(request.body.len() <= BODY_BYTES + OBJECT_BYTES);
                    let (objects, _) = split(&request.body).unwrap();
                    assert_eq!(objects.len(), request.places.len());
                    sent.push(objects.len());
                }
                Step::LeaveOut(why) => left_out.push(why),
                Step::Note(note) => panic!("{note}"),
            }
            Ok(())
        });
        assert_eq!((done, &*sent), (Ok(()), &[6, 200, 93][..]));
        assert_eq!(left_out.len(), 1);
        assert!(
            left_out[0].starts_with("f, line 10: it has 293 KiB"),
            "{left_out:?}"
        );
    }

    #[test]
    fn a_file_in_another_encoding_is_sent_as_utf_8() {
        let file =
            b"BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:1\nSUMMARY:\xdcbung\nEND:VEVENT\nEND:VCALENDAR\n";
        let mut steps = Vec::new();
        let done: Result<(), ()> = each_step("f", file, |step| {
            steps.push(step);
            Ok(())
        });
        assert_eq!(done, Ok(()));
        let [Step::Note(note), Step::Send(request)] = &steps[..] else {
            panic!("{steps:?}");
        };
        assert!(note.contains("Windows-1252"), "{note}");
        assert!(String::from_utf8_lossy(&request.body).contains("SUMMARY:Übung"));
    }
}
