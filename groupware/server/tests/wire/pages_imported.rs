//! The pages of imported events: shown, edited, removed from the series, and deleted.

use crate::browser::{between, text};
use crate::site::{Site, link};
use crate::support::{TOKEN, send, start};

const EVENT: &str = "BEGIN:VEVENT\r\nUID:e\\,1\r\nDTSTART:20610304T100000Z\r\nDTEND:20610304T113000Z\r\n\
    SUMMARY:Old\r\nATTENDEE:mailto:eve@example.org\r\nX-VENDOR;A=\":\":kept\r\nEND:VEVENT\r\n";
const SERIES: &str = "BEGIN:VEVENT\r\nUID:s\r\nDTSTART:20200106T100000Z\r\nRRULE:FREQ=DAILY\r\n\
    SUMMARY:Rounds\r\nEND:VEVENT\r\n";
const TASKS: &str = "BEGIN:VTODO\r\nUID:t\r\nDUE:20610306T120000Z\r\nSUMMARY:Paint <it>\r\nEND:VTODO\r\n\
    BEGIN:VJOURNAL\r\nUID:j\r\nSUMMARY:Log\r\nEND:VJOURNAL\r\n";

fn import(site: &Site<'_>, parts: &str) {
    let bearer = format!("Bearer {TOKEN}");
    let file = format!("BEGIN:VCALENDAR\r\n{parts}END:VCALENDAR\r\n");
    let headers = [("authorization", bearer.as_str())];
    let path = "/admin/users/ada/calendar";
    let reply = send(
        site.server.address(),
        "POST",
        path,
        &headers,
        file.as_bytes(),
    );
    assert_eq!(reply.status, 200, "{reply:?}");
}

/// Returns the file that the page offers.
fn downloaded(site: &Site<'_>, path: &str) -> String {
    let page = site.ada.get(path);
    let link = between(&page, "href=\"/mail/ada/api/calendar/events/", "\"");
    let reply = site
        .ada
        .ask(&format!("/mail/ada/api/calendar/events/{link}"));
    assert_eq!(reply.status, 200, "{reply:?}");
    text(&reply)
}

#[test]
fn tasks_and_journals_have_a_page_of_their_own() {
    let server = start();
    let site = Site::new(&server);
    let month = "/calendar/month/2061-03";
    assert!(!site.ada.get(month).contains("/calendar/others"));
    assert!(site.ada.get("/calendar/others").contains("There are none."));
    import(&site, TASKS);
    for path in [month, "/calendar/week/2061-02-28"] {
        assert!(
            site.ada.get(path).contains("href=\"/calendar/others\""),
            "{path}"
        );
        assert!(!site.ben.get(path).contains("/calendar/others"), "{path}");
    }
    let page = site.ada.get("/calendar/others");
    for part in [
        "Paint &lt;it&gt;</a>",
        "Task, Sunday, 6 March 2061, 12:00 (UTC)",
        "Log</a>",
        "Journal</p>",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("after="), "{page}");
    let next = site.ada.get("/calendar/others?after=j");
    assert!(
        next.contains("Paint") && !next.contains("Journal</p>"),
        "{next}"
    );
    let task = site.ada.get("/calendar/event/t");
    assert!(task.contains("A task that was imported."), "{task}");
    assert!(!task.contains("/edit\""), "{task}");
    let journal = site.ada.get("/calendar/event/j");
    assert!(!journal.contains("<dt>When</dt>"), "{journal}");
    assert!(downloaded(&site, "/calendar/event/j").contains("UID:j"));
    assert_eq!(site.ada.ask("/calendar/event/t/edit").status, 403);
    assert!(
        site.ada
            .get("/calendar/event/t/delete")
            .contains("Delete this entry?")
    );
    for uid in ["t", "j"] {
        let gone = site.ada.send(&format!("/calendar/event/{uid}/delete"), &[]);
        assert_eq!(gone.header("location"), Some("/calendar/others"));
    }
    assert!(site.ada.get("/calendar/others").contains("There are none."));
    assert!(!site.ada.get(month).contains("/calendar/others"));
}

#[test]
fn what_was_imported_is_changed_in_its_lines() {
    let server = start();
    let site = Site::new(&server);
    import(&site, &[EVENT, SERIES].concat());
    let event = "/calendar/event/e%2C1";
    let form = site.ada.get(&format!("{event}/edit"));
    assert!(
        form.contains("name=\"start_day\"") && !form.contains("name=\"people\""),
        "{form}"
    );
    let fields = [
        ("title", "New"),
        ("start_day", "2061-03-04"),
        ("start_time", "10:00"),
        ("end_day", "2061-03-04"),
        ("end_time", "12:00"),
        ("place", "Quay"),
        ("sequence", "0"),
    ];
    let changed = site.ada.send(&format!("{event}/edit"), &fields);
    assert_eq!(changed.header("location"), Some(event), "{changed:?}");
    let file = downloaded(&site, event);
    for part in [
        "UID:e\\,1\r\nDTSTART:20610304T100000Z\r\nDTEND:20610304T120000Z\r\nSUMMARY:New\r\n\
         ATTENDEE:mailto:eve@example.org\r\nX-VENDOR;A=\":\":kept\r\nLOCATION:Quay\r\n",
        "SEQUENCE:1\r\n",
    ] {
        assert!(file.contains(part), "{file}");
    }
    // A form based on an older version gets a conflict.
    assert_eq!(site.ada.send(&format!("{event}/edit"), &fields).status, 409);

    let week = site.ada.get("/calendar/week");
    let one = site.ada.get(&link(&week, "/calendar/event/s%01"));
    assert!(
        one.contains("Change the series") && one.contains("/calendar/event/s/edit"),
        "{one}"
    );
    let form = site.ada.get("/calendar/event/s/edit");
    let start = between(&form, "type=\"hidden\" name=\"start_time\" value=\"", "\"").to_owned();
    assert_eq!(start, "10:00");
    let day = "2020-01-06";
    let fields = [
        ("title", "Watches"),
        ("start_day", day),
        ("start_time", "10:00"),
        ("end_day", day),
        ("end_time", "10:00"),
    ];
    let changed = site.ada.send("/calendar/event/s/edit", &fields);
    assert_eq!(changed.status, 303, "{changed:?}");
    let week = site.ada.get("/calendar/week");
    assert!(
        week.contains("Watches") && !week.contains("Rounds"),
        "{week}"
    );
    let mut later = fields;
    later[2].1 = "09:00";
    let refused = site.ada.send("/calendar/event/s/edit", &later);
    assert_eq!(refused.status, 403);
    assert!(text(&refused).contains("series"), "{refused:?}");
}

#[test]
fn what_a_form_shows_and_nobody_touches_stays() {
    let server = start();
    let site = Site::new(&server);
    // A text as written by Thunderbird, with an alternative form, and a location of two lines.
    let texts = "LOCATION:Quay\\nSouth\r\n\
                 DESCRIPTION;ALTREP=\"data:text/html,%3Cb%3EHello%3C/b%3E\":Hello\\n\r\n";
    let times = "DTSTART:20610304T100000Z\r\nDTEND:20610304T113000Z\r\n";
    import(
        &site,
        &format!(
            "BEGIN:VEVENT\r\nUID:n\r\n{times}ORGANIZER:mailto:eve@example.org\r\n\
             SUMMARY:Old\r\n{texts}END:VEVENT\r\n"
        ),
    );
    let form = site.ada.get("/calendar/event/n/edit");
    let seen = between(&form, "name=\"seen\" value=\"", "\"").to_owned();
    let fields = [
        ("title", "New"),
        ("start_day", "2061-03-04"),
        ("start_time", "10:00"),
        ("end_day", "2061-03-04"),
        ("end_time", "11:30"),
        ("place", "QuaySouth"),
        ("about", "Hello"),
        ("sequence", "0"),
        ("seen", &*seen),
    ];
    let changed = site.ada.send("/calendar/event/n/edit", &fields);
    assert_eq!(changed.status, 303, "{changed:?}");
    let file = downloaded(&site, "/calendar/event/n");
    assert!(
        file.contains(&format!("SUMMARY:New\r\n{texts}")) && !file.contains("SEQUENCE"),
        "{file}"
    );
    // Its versions are counted elsewhere: a form based on an older one still gets a conflict.
    let late = site.ada.send("/calendar/event/n/edit", &fields);
    assert_eq!(late.status, 409, "{late:?}");
}
