//! Imported objects, and the records after an import.

use groupware_calendar::{Context, Format, Ids, Outcome, Ready, event, import, ready};
use groupware_proto_ical::split;

use super::{World, user};

pub(crate) const BERLIN: &str = "BEGIN:VTIMEZONE\r\nTZID:Berlin Time\r\nX-LIC-LOCATION:Europe/Berlin\r\n\
    BEGIN:STANDARD\r\nDTSTART:19701025T030000\r\nTZOFFSETFROM:+0200\r\nTZOFFSETTO:+0100\r\n\
    RRULE:FREQ=YEARLY;BYMONTH=10;BYDAY=-1SU\r\nEND:STANDARD\r\nEND:VTIMEZONE\r\n";

/// A weekly meeting of an external organizer: one instance moved, one cancelled, one excluded, one added.
pub(crate) const WEEKLY: &str = "BEGIN:VEVENT\r\nUID:weekly@example.org\r\nDTSTAMP:20251201T120000Z\r\n\
    DTSTART;TZID=Berlin Time:20260316T090000\r\nDTEND;TZID=Berlin Time:20260316T100000\r\n\
    RRULE:FREQ=WEEKLY;UNTIL=20260413T070000Z\r\nEXDATE;TZID=Berlin Time:20260330T090000\r\n\
    RDATE;TZID=Berlin Time:20260401T150000\r\nSUMMARY:Planning\\, weekly\r\nSEQUENCE:3\r\n\
    ORGANIZER;CN=Eve;X-WHAT=\"a;b\":mailto:eve@example.org\r\n\
    ATTENDEE;PARTSTAT=TENTATIVE;ROLE=OPT-PARTICIPANT:mailto:user00000@localhost\r\n\
    X-VENDOR-THING;X-P=1:kept\\nas it is\r\n\
    BEGIN:VALARM\r\nACTION:DISPLAY\r\nTRIGGER:-PT15M\r\nEND:VALARM\r\nEND:VEVENT\r\n\
    BEGIN:VEVENT\r\nUID:weekly@example.org\r\nRECURRENCE-ID;TZID=Berlin Time:20260323T090000\r\n\
    DTSTAMP:20251202T120000Z\r\nDTSTART;TZID=Berlin Time:20260324T110000\r\n\
    DURATION:PT2H\r\nSUMMARY:Moved\r\nSEQUENCE:4\r\nEND:VEVENT\r\n\
    BEGIN:VEVENT\r\nUID:weekly@example.org\r\nRECURRENCE-ID:20260406T070000Z\r\n\
    DTSTART;TZID=Berlin Time:20260406T090000\r\nSTATUS:CANCELLED\r\nEND:VEVENT\r\n";

pub(crate) fn calendar(parts: &[&str]) -> String {
    let parts = parts.concat();
    format!("BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//else//EN\r\n{parts}END:VCALENDAR\r\n")
}

pub(crate) fn single(uid: &str, rest: &str) -> String {
    let start = "DTSTART:20260202T100000Z\r\nDTEND:20260202T110000Z\r\n";
    format!("BEGIN:VEVENT\r\nUID:{uid}\r\n{start}{rest}END:VEVENT\r\n")
}

pub(crate) fn read(world: &World, file: &str) -> Vec<Result<Ready, String>> {
    let (objects, faults) = split(file.as_bytes()).unwrap();
    assert!(faults.is_empty(), "{faults:?}");
    let owner = format!("{}@localhost", user(0));
    objects
        .iter()
        .map(|object| ready(object, &owner, world.now))
        .collect()
}

/// Imports a file for the first user; also returns whether something was written.
pub(crate) fn bring(world: &World, file: &str) -> (Vec<Outcome>, bool) {
    let objects: Vec<Ready> = read(world, file).into_iter().map(Result::unwrap).collect();
    let (outcomes, operations) = bring_batch(world, &objects);
    assert_eq!(outcomes.len(), objects.len());
    (outcomes, operations > 0)
}

/// Imports the first objects, as many as a batch holds; returns their number and the number of operations.
pub(crate) fn bring_some(world: &World, objects: &[Ready]) -> (usize, usize) {
    let (outcomes, operations) = bring_batch(world, objects);
    (outcomes.len(), operations)
}

fn bring_batch(world: &World, objects: &[Ready]) -> (Vec<Outcome>, usize) {
    let decided = world.store.read(|snapshot| {
        import(
            &Context {
                snapshot,
                directory: &world.users,
                mailbox: &user(0),
                now: world.now,
                ids: Ids::from_random(1),
                presumes_absent: false,
            },
            objects,
        )
    });
    let (decision, outcomes) = decided.unwrap();
    let operations = decision.batch.asserts.len() + decision.batch.ops.len();
    world.store.commit_blocking(decision.batch).unwrap();
    (outcomes, operations)
}

pub(crate) fn original(world: &World, name: &str) -> String {
    let read = |format| {
        let owner = user(0);
        world
            .store
            .read(|snapshot| event(snapshot, &owner, name, format))
    };
    String::from_utf8(read(Format::ICalendar).unwrap().1).unwrap()
}

/// All records of the first user's calendar.
pub(crate) fn records(world: &World) -> usize {
    let mut count = 0;
    let (from, to) = groupware_calendar::ALL;
    let scanned: Result<(), groupware_store::StoreError> = world.store.read(|snapshot| {
        snapshot.scan(&user(0), from, Some(to), usize::MAX, &mut |_, _| {
            count += 1;
            std::ops::ControlFlow::Continue(())
        })?;
        Ok(())
    });
    scanned.unwrap();
    count
}

pub(crate) const ALL_2026: [(&str, &str); 2] = [
    ("since", "2026-01-01T00:00:00Z"),
    ("before", "2027-01-01T00:00:00Z"),
];
