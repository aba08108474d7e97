//! The pages of mails and their folders, for each kind of user.

use insta::assert_snapshot;

use crate::site::{Site, link, newest};
use crate::support::start;
use crate::transcript::stars_between;

const PLAIN: &str = "From: Ben Okafor <ben@localhost>\nTo: \"Ada <b>\" <ada@localhost>, ben@localhost\n\
    Cc: ada@localhost\nReply-To: ben@localhost\nSubject: Plans <for> March\n\
    Message-ID: <plain@localhost>\nDate: Mon, 06 Jan 2020 09:30:00 +0000\n\n\
    See https://example.com/?a=1&b=2.\n> quoted\n> twice\nOne\n";

const FORMATTED: &str = "From: ben@localhost\nTo: ada@localhost\nSubject: =?utf-8?Q?Gr=C3=BC=C3=9Fe?=\n\
    Message-ID: <html@localhost>\nDate: Tue, 07 Jan 2020 09:30:00 +0000\nMIME-Version: 1.0\n\
    Content-Type: multipart/mixed; boundary=m\n\n\
    --m\nContent-Type: multipart/alternative; boundary=a\n\n\
    --a\nContent-Type: text/plain\n\nHello\n\
    --a\nContent-Type: text/html\n\n\
    <h1 onclick=x()>Hello</h1><script>x()</script><img src=https://example.com/x.png>\
    <img src=cid:p alt=mark><a href='javascript:x()'>a</a><a href='https://example.com/'>b</a>\
    <form action=/sign-out><input></form><table><tr><td style='color:red'>1</td></tr></table>\n\
    --a--\n\
    --m\nContent-Type: image/png\nContent-ID: <p>\nContent-Disposition: inline; filename=p.png\n\
    Content-Transfer-Encoding: base64\n\niVBORw0KGgo=\n\
    --m\nContent-Type: text/plain\nContent-Disposition: attachment; filename=\"a b&c.txt\"\n\nfile\n\
    --m--\n";

const INTRICATE: &str = "From: ben@localhost\nTo: ada@localhost\nSubject: Deep\n\
    Message-ID: <deep@localhost>\nDate: Wed, 08 Jan 2020 09:30:00 +0000\n\
    Content-Type: text/html\n\nDIVS<p>text</p>\n";

const BARE: &str = "To: ada@localhost\nMessage-ID: <bare@localhost>\n\
    Date: Thu, 09 Jan 2020 09:30:00 +0000\nFrom: ben@localhost\n\n";

const DRAFT: &str = "From: ada@localhost\nTo: Ben <ben@localhost>\nBcc: ada@localhost\nSubject: Later\n\
    Message-ID: <draft@localhost>\nDate: Fri, 10 Jan 2020 09:30:00 +0000\n\n\"Soon\" & <later>\n";

/// Mails of each kind in ada's inbox, the bare one the newest; a draft; an own folder.
fn filled(site: &Site<'_>) {
    site.deliver(PLAIN);
    site.deliver(FORMATTED);
    site.deliver(&INTRICATE.replace("DIVS", &"<div>".repeat(3000)));
    site.deliver(BARE);
    site.keep(DRAFT);
    let made = site.ada.send("/folders", &[("name", "Harbour <1>")]);
    assert_eq!(made.status, 303);
}

/// Returns the paths of the mails of ada's inbox, newest first.
fn inbox(site: &Site<'_>) -> Vec<String> {
    let page = site.ada.get("/box/inbox");
    let links = page.split("href=\"/message/").skip(1);
    let unids = links.map(|rest| rest.split('"').next().unwrap());
    unids.map(|unid| format!("/message/{unid}")).collect()
}

fn unid(path: &str) -> &str {
    path.rsplit('/').next().unwrap()
}

/// Masks the used size of an account with mails that contain the date of the run.
fn without_sizes(text: &str) -> String {
    stars_between(text, "<label class=\"room\">", "</label>")
}

#[test]
fn folders_without_mails() {
    let server = start();
    let mut site = Site::new(&server);
    for folder in ["inbox", "sent", "drafts", "trash", "archive"] {
        site.look(&format!("/box/{folder}"));
    }
    assert_snapshot!("folders_without_mails", site.take());
    site.look("/folders");
    assert_snapshot!("no_own_folders", site.take());
}

#[test]
fn folders_with_mails() {
    let mut config = crate::support::config();
    config.mail_quota_bytes = Some(1 << 20);
    let server = groupware_server::Server::start(config).unwrap();
    let mut site = Site::new(&server);
    filled(&site);
    site.look("/box/inbox");
    assert_snapshot!("inbox", site.take());
    for path in [
        "/box/inbox?find=plans",
        "/box/inbox?find=%3Cb%3E",
        "/box/inbox?page=9",
        "/box/inbox?page=x",
        "/box/drafts",
    ] {
        site.look_as_ada(path);
    }
    assert_snapshot!("parts_of_folders", site.take());
    let sent = site.ben.ask("/box/sent");
    site.note("Ben: GET /box/sent", &sent);
    assert_snapshot!("sent", site.take());
    let mails = inbox(&site);
    let trashed = site.ada.send(&mails[0], &[("do", "delete")]);
    assert_eq!(trashed.status, 303);
    site.look_as_ada("/box/trash");
    site.look_as_ada(&mails[0]);
    assert_snapshot!("trash", site.take());
    site.look("/folders");
    let own = link(&site.ada.get("/folders"), "/folders/");
    site.look(&own);
    site.look(&own.replace("/folders/", "/box/"));
    assert_snapshot!("own_folders", site.take());
    for path in [
        "/box/nothing",
        "/box/0123456789ABCDEF0123456789ABCDEF",
        "/folders/x",
    ] {
        site.look(path);
    }
    assert_snapshot!("folders_that_are_not_there", site.take());
}

#[test]
fn mails() {
    let server = start();
    let mut site = Site::new(&server);
    filled(&site);
    let mails = inbox(&site);
    for (name, path) in ["bare", "intricate", "formatted", "plain"]
        .iter()
        .zip(&mails)
    {
        site.look(path);
        let text = site.take().replace(&"<div>\n".repeat(2000), "");
        assert_snapshot!(format!("mail_{name}"), text);
    }
    site.look_as_ada(&format!("{}?as=text", mails[2]));
    assert_snapshot!("mail_formatted_as_text", site.take());
    for rest in [
        "/source",
        "/file/a%20b%26c.txt",
        "/file/p.png",
        "/file/nothing",
    ] {
        site.look(&format!("{}{rest}", mails[2]));
    }
    site.look("/message/x");
    site.look("/message/x/source");
    site.look_as_ada(&newest(&site.ada, "drafts").replace("/write?draft=", "/message/"));
    assert_snapshot!("mail_files", site.take());
}

#[test]
fn writing() {
    let server = start();
    let mut site = Site::new(&server);
    filled(&site);
    site.look("/write");
    site.look_as_ada("/write?to=ben");
    assert_snapshot!("write", site.take());
    let mails = inbox(&site);
    let (formatted, plain) = (unid(&mails[2]), unid(&mails[3]));
    site.look(&format!("/write?reply={plain}"));
    assert_snapshot!("reply", site.take());
    for way in [
        format!("/write?all={plain}"),
        format!("/write?reply={formatted}"),
        format!("/write?forward={formatted}"),
        format!("/write?draft={plain}"),
        "/write?reply=x".to_owned(),
    ] {
        site.look_as_ada(&way);
    }
    assert_snapshot!("other_ways_to_write", site.take());
    site.look(&newest(&site.ada, "drafts"));
    assert_snapshot!("draft", site.take());
}

#[test]
fn mails_that_are_sent() {
    let server = start();
    let mut site = Site::new(&server);
    site.write(&[("to", ""), ("do", "send")], &[]);
    let wrong = [
        ("to", "nobody, ben"),
        ("cc", "a b@c"),
        ("subject", "S"),
        ("text", "one\r\n<two>"),
        ("do", "send"),
    ];
    site.write(&wrong, &[]);
    site.write(&wrong, &[("a.txt", "file")]);
    site.write(&[("to", "ben"), ("do", "dance")], &[]);
    site.write(
        &[("to", "ben"), ("subject", "a\r\nBcc: x"), ("do", "send")],
        &[],
    );
    site.write(
        &[
            ("to", "ben"),
            ("draft", "0123456789ABCDEF0123456789ABCDEF"),
            ("do", "send"),
        ],
        &[],
    );
    site.submit("/write", &[("to", "ben")]);
    site.submit_wrongly("/write", &[("to", "ben")]);
    site.write(&[("to", "ben"), ("subject", "S"), ("do", "save")], &[]);
    site.write(
        &[("to", "ben"), ("subject", "S"), ("do", "send")],
        &[("a.txt", "file")],
    );
    assert_snapshot!(without_sizes(&site.take()));
}

#[test]
fn forms_of_mails() {
    let server = start();
    let mut site = Site::new(&server);
    filled(&site);
    let mails = inbox(&site);
    let picked = unid(&mails[0]).to_owned();
    let pick = ("pick", picked.as_str());
    for fields in [
        vec![],
        vec![("do", "delete")],
        vec![("pick", "x"), ("do", "delete")],
        vec![pick, ("do", "dance")],
        vec![pick, ("do", "move"), ("to", "nowhere")],
        vec![pick, ("do", "move"), ("to", "drafts")],
        vec![pick, ("do", "read")],
        vec![pick, ("do", "unread")],
        vec![pick, ("do", "move"), ("to", "archive")],
        vec![pick, ("do", "delete")],
    ] {
        site.submit("/box/inbox?page=0&find=x", &fields);
    }
    site.submit_wrongly("/box/inbox", &[pick, ("do", "delete")]);
    assert_snapshot!("forms_of_lists", site.take());
    site.submit("/box/trash", &[pick, ("do", "delete")]);
    site.submit(&mails[0], &[("do", "delete")]);
    site.submit(&mails[0], &[("do", "delete"), ("sure", "1")]);
    site.submit(&mails[0], &[("do", "delete")]);
    site.submit_wrongly(&mails[1], &[("do", "delete")]);
    site.submit("/trash/empty", &[]);
    site.submit("/trash/empty", &[("sure", "1")]);
    site.submit_wrongly("/trash/empty", &[("sure", "1")]);
    assert_snapshot!("forms_that_delete", site.take());
    let long = "x".repeat(129);
    for name in ["", "inbox", "harbour <1>", long.as_str()] {
        site.submit("/folders", &[("name", name)]);
    }
    site.submit("/folders", &[("name", "Quay")]);
    let own = link(&site.ada.get("/folders"), "/folders/");
    site.submit(&own, &[("do", "rename"), ("name", "inbox")]);
    site.submit(&own, &[("do", "rename"), ("name", "Pier")]);
    site.submit(&own, &[("do", "dance")]);
    site.submit_wrongly(&own, &[("do", "delete")]);
    site.submit(&own, &[("do", "delete")]);
    site.submit(&own, &[("do", "delete")]);
    assert_snapshot!("forms_of_own_folders", site.take());
}
