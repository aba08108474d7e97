//! The pages of mails over real sockets, as a browser requests them.

use crate::browser::{Browser, HERE, HTML, between, text, two_users};
use crate::support::{Reply, send, start};

/// Sends a form with files, as browsers do.
fn write(browser: &Browser<'_>, fields: &[(&str, &str)], files: &[(&str, &str, &[u8])]) -> Reply {
    write_as(browser, &[HERE], fields, files)
}

fn write_as(
    browser: &Browser<'_>,
    more: &[(&str, &str)],
    fields: &[(&str, &str)],
    files: &[(&str, &str, &[u8])],
) -> Reply {
    let mut body = Vec::new();
    let proof = ("proof", browser.proof.as_str());
    for (name, value) in [&[proof], fields].concat() {
        let head = format!("--line\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n");
        body.extend_from_slice(format!("{head}{value}\r\n").as_bytes());
    }
    for (name, kind, data) in files {
        let head = format!(
            "--line\r\ncontent-disposition: form-data; name=\"files\"; filename=\"{name}\"\r\n\
             content-type: {kind}\r\n\r\n"
        );
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(data);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"--line--\r\n");
    let kind = ("content-type", "multipart/form-data; boundary=line");
    let headers = [&[HTML, kind, ("cookie", browser.cookie.as_str())], more].concat();
    send(browser.server.address(), "POST", "/write", &headers, &body)
}

/// Delivers a message unchanged through the interface for programs.
fn deliver(browser: &Browser<'_>, user: &str, message: &str) {
    let headers = [
        ("cookie", browser.cookie.as_str()),
        ("content-type", "message/rfc822"),
    ];
    let path = format!("/mail/{user}/api/mail/outbox");
    let message = message.replace('\n', "\r\n");
    let reply = send(
        browser.server.address(),
        "POST",
        &path,
        &headers,
        message.as_bytes(),
    );
    assert_eq!(reply.status, 201, "{}", text(&reply));
}

/// Returns the path of the newest mail of a folder.
fn newest(browser: &Browser<'_>, folder: &str) -> String {
    let list = browser.get(&format!("/box/{folder}"));
    let link = match folder {
        "drafts" => "/write?draft=",
        _ => "/message/",
    };
    format!("{link}{}", between(&list, &format!("href=\"{link}"), "\""))
}

#[test]
fn the_life_of_a_mail() {
    let server = start();
    let (ada, ben) = two_users(&server);
    let fields = [
        ("to", "Ben Okafor <ben>"),
        ("subject", "Plans"),
        ("text", "One\r\nTwo"),
        ("do", "send"),
    ];
    let data = b"\x00\xFFfile";
    let sent = write(
        &ada,
        &fields,
        &[
            ("pl\u{e4}ne.bin", "application/x-plans", data),
            ("", "application/octet-stream", b""),
        ],
    );
    assert_eq!(sent.status, 303, "{}", text(&sent));
    assert!(ada.get("/box/sent").contains("Ben Okafor"));
    let list = ben.get("/box/inbox");
    assert!(
        list.contains("<tr class=\"unread\">") && list.contains("aria-label=\"with files\""),
        "{list}"
    );
    let mail = newest(&ben, "inbox");
    let page = ben.get(&mail);
    assert!(
        page.contains("One\nTwo") && page.contains("1 file"),
        "{page}"
    );
    assert!(!ben.get("/box/inbox").contains("<tr class=\"unread\">"));
    let name = between(&page, &format!("{mail}/file/"), "\"");
    let file = ben.ask(&format!("{mail}/file/{name}"));
    assert_eq!((file.status, file.body.as_slice()), (200, data.as_slice()));
    assert!(
        file.header("content-disposition")
            .unwrap()
            .starts_with("attachment;")
    );
    assert_eq!(file.header("x-content-type-options"), Some("nosniff"));
    assert!(
        file.header("content-security-policy")
            .unwrap()
            .contains("sandbox")
    );
    // No other user sees it.
    assert_eq!(ada.ask(&mail).status, 404);
    // A reply, then the path of the mail through the folders until it is deleted.
    let answer = ben.get(&format!(
        "/write?reply={}",
        mail.strip_prefix("/message/").unwrap()
    ));
    assert!(
        answer.contains("value=\"Re: Plans\"") && answer.contains("&gt; One"),
        "{answer}"
    );
    let answers = between(&answer, "name=\"answers\" value=\"", "\"");
    let fields = [
        ("to", "ada"),
        ("subject", "Re: Plans"),
        ("text", "Yes"),
        ("answers", answers),
        ("do", "send"),
    ];
    assert!(!ben.get("/box/inbox").contains("class=\"sign\""));
    assert_eq!(write(&ben, &fields, &[]).status, 303);
    assert_eq!(ben.send(&mail, &[("do", "important")]).status, 303);
    for page in ["/box/inbox", &mail] {
        let page = ben.get(page);
        for sign in ["aria-label=\"important\"", "aria-label=\"answered\""] {
            assert!(page.contains(sign), "{page}");
        }
    }
    assert_eq!(ben.send(&mail, &[("do", "unimportant")]).status, 303);
    assert!(!ben.get(&mail).contains("aria-label=\"important\""));
    let source = text(&ada.ask(&format!("{}/source", newest(&ada, "inbox"))));
    assert!(
        source.contains("In-Reply-To: <") && source.contains("References: <"),
        "{source}"
    );
    assert_eq!(
        ben.send(&mail, &[("do", "move"), ("to", "archive")]).status,
        303
    );
    assert!(ben.get("/box/archive").contains("Plans"));
    assert_eq!(ben.send(&mail, &[("do", "delete")]).status, 303);
    let question = ben.send(&mail, &[("do", "delete")]);
    assert!(
        text(&question).contains("Delete for good?"),
        "{}",
        text(&question)
    );
    assert_eq!(ben.ask(&mail).status, 200);
    assert_eq!(
        ben.send(&mail, &[("do", "delete"), ("sure", "1")]).status,
        303
    );
    assert_eq!(ben.ask(&mail).status, 404);
}

#[test]
fn several_mails_at_once() {
    let server = start();
    let (ada, _) = two_users(&server);
    for number in 0..55 {
        let message =
            format!("From: ada@localhost\nTo: ada@localhost\nSubject: Number {number}\n\nx\n");
        deliver(&ada, "ada", &message);
    }
    let page = ada.get("/box/inbox");
    assert!(
        page.contains("1 – 50 of 55") && page.contains("/box/inbox?page=1"),
        "{page}"
    );
    let page = ada.get("/box/inbox?page=1");
    assert!(page.contains("51 – 55 of 55") && page.contains("Number 0<"));
    assert!(
        ada.get("/box/inbox?page=9")
            .contains("no mails this far back")
    );
    assert!(
        ada.get("/box/inbox?find=number%2054")
            .contains("1 – 1 of 1")
    );
    assert!(ada.get("/box/inbox?find=%3Cb%3E").contains("“&lt;b&gt;”"));
    let pick = between(&page, "name=\"pick\" value=\"", "\"").to_owned();
    let none = ada.send("/box/inbox?page=1", &[("do", "delete")]);
    assert_eq!(none.status, 422);
    let done = ada.send("/box/inbox?page=1", &[("do", "unread"), ("pick", &pick)]);
    assert_eq!(done.header("location"), Some("/box/inbox?page=1"));
    ada.send("/box/inbox?page=1", &[("do", "delete"), ("pick", &pick)]);
    assert!(ada.get("/box/inbox").contains("of 54"));
    let sure = ada.send("/box/trash", &[("do", "delete"), ("pick", &pick)]);
    assert!(
        text(&sure).contains("One mail can't be brought back"),
        "{}",
        text(&sure)
    );
    let empty = ada.send("/trash/empty", &[]);
    assert!(text(&empty).contains("Empty the trash?"));
    assert_eq!(ada.send("/trash/empty", &[("sure", "1")]).status, 303);
    assert!(ada.get("/box/trash").contains("The trash is empty."));
    for bad in [
        "/box/nothing",
        "/box/0123456789ABCDEF0123456789ABCDEF",
        "/message/x",
        "/write?reply=x",
    ] {
        assert_eq!(ada.ask(bad).status, 404, "{bad}");
    }
}

#[test]
fn a_mail_that_can_not_be_sent_yet_keeps_its_text_and_files() {
    let server = start();
    let (ada, _) = two_users(&server);
    let fields = [
        ("to", "nobody, ben"),
        ("cc", "a b@c"),
        ("subject", "S"),
        ("text", "long text"),
        ("do", "send"),
    ];
    let reply = write(&ada, &fields, &[("a.txt", "text/plain", b"content")]);
    assert_eq!(reply.status, 422);
    let page = text(&reply);
    for part in [
        "value=\"nobody, ben\"",
        "value=\"a b@c\"",
        "long text",
        "No such user here: nobody.",
        "is no address.",
        "a.txt",
        "kept in your drafts",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    // The form continues with the draft, including the file.
    let draft = between(&page, "name=\"draft\" value=\"", "\"").to_owned();
    let keep = between(&page, "name=\"keep\" checked value=\"", "\"").to_owned();
    let fields = [
        ("to", "ben"),
        ("subject", "S"),
        ("text", "long text"),
        ("draft", &draft),
        ("keep", &keep),
        ("do", "send"),
    ];
    let sent = write(&ada, &fields, &[]);
    assert_eq!(sent.status, 303, "{}", text(&sent));
    assert!(ada.get("/box/drafts").contains("No draft waits"));
    assert!(ada.get(&newest(&ada, "sent")).contains("a.txt"));
    // A draft is sent once, however often the form is submitted.
    assert_eq!(write(&ada, &fields, &[]).status, 404);
    let none = write(&ada, &[("to", ""), ("do", "send")], &[]);
    assert!(none.status == 422 && text(&none).contains("Enter who gets it."));
}

#[test]
fn drafts_are_kept_changed_and_thrown_away() {
    let server = start();
    let (ada, _) = two_users(&server);
    let fields = [
        ("to", "ben"),
        ("bcc", "ada"),
        ("subject", "Later"),
        ("text", "x"),
        ("do", "save"),
    ];
    let saved = write(&ada, &fields, &[("a.txt", "text/plain", b"content")]);
    assert_eq!(
        saved.header("location"),
        Some("/box/drafts"),
        "{}",
        text(&saved)
    );
    let path = newest(&ada, "drafts");
    let page = ada.get(&path);
    assert!(
        page.contains("value=\"ada@localhost\"") && page.contains("a.txt"),
        "{page}"
    );
    let draft = path.strip_prefix("/write?draft=").unwrap();
    let fields = [("subject", "Much later"), ("draft", draft), ("do", "save")];
    assert_eq!(write(&ada, &fields, &[]).status, 303);
    let page = ada.get(&path);
    assert!(
        page.contains("Much later") && !page.contains("a.txt"),
        "{page}"
    );
    assert_eq!(
        ada.ask(&format!("/message/{draft}")).header("location"),
        Some(path.as_str())
    );
    assert_eq!(
        ada.send("/box/drafts", &[("do", "delete"), ("pick", draft)])
            .status,
        303
    );
    assert_eq!(ada.ask(&path).status, 404);
}

/// The same draft in two windows: the older one neither sends nor overwrites the newer one's text.
#[test]
fn an_old_window_does_not_overwrite_a_draft() {
    let server = start();
    let (ada, _) = two_users(&server);
    let text_of = |name: &str| format!("the text of the {name} window");
    let fields = [
        ("to", "ben"),
        ("subject", "a"),
        ("text", "b"),
        ("do", "save"),
    ];
    assert_eq!(write(&ada, &fields, &[]).status, 303);
    let path = newest(&ada, "drafts");
    let draft = path.strip_prefix("/write?draft=").unwrap();
    let seen = || {
        let page = ada.get(&path);
        let (_, rest) = page.split_once("name=\"seen\" value=\"").unwrap();
        rest.split('"').next().unwrap().to_owned()
    };
    let first = seen();
    let submit = |name: &str, seen: &str, what: &str| {
        let typed = text_of(name);
        let fields = [
            ("to", "ben"),
            ("subject", "a"),
            ("text", typed.as_str()),
            ("draft", draft),
            ("seen", seen),
            ("do", what),
        ];
        write(&ada, &fields, &[])
    };
    assert_eq!(submit("newer", &first, "save").status, 303);
    for what in ["save", "send"] {
        let refused = submit("older", &first, what);
        let page = text(&refused);
        assert_eq!(refused.status, 409, "{page}");
        assert!(page.contains(&text_of("newer")) && page.contains(&text_of("older")));
        assert!(page.contains(&format!("name=\"seen\" value=\"{}\"", seen())));
    }
    assert!(ada.get(&path).contains(&text_of("newer")));
    // A user that has seen both decides.
    assert_eq!(submit("older", &seen(), "send").status, 303);
    assert_eq!(ada.ask(&path).status, 404);
}

#[test]
fn a_hostile_mail_is_harmless() {
    let server = start();
    let (ada, ben) = two_users(&server);
    let message = "From: \"<script>alert(1)</script>\" <ben@localhost>\n\
        To: ada@localhost\n\
        Subject: =?utf-8?Q?</title><script>alert(2)</script>=22?=\n\
        MIME-Version: 1.0\n\
        Content-Type: multipart/mixed; boundary=b\n\n\
        --b\nContent-Type: text/html\n\n\
        <p id=main class=skip style='position:fixed' onclick=alert(3)>Hello</p>\
        <script>alert(4)</script><img src=https://evil.example/x.png onerror=alert(5)>\
        <a href='javascript:alert(6)'>a</a><form action=/sign-out method=post><input></form>\
        <iframe src=/box/inbox></iframe><meta http-equiv=refresh content='0;url=//evil.example'>\n\
        --b\nContent-Type: text/html\nContent-Disposition: attachment; filename=\"a\\\"><script>.html\"\n\n\
        <script>alert(7)</script>\n\
        --b\nContent-Type: image/svg+xml\nContent-ID: <x>\nContent-Disposition: inline; filename=x.svg\n\n\
        <svg xmlns='http://www.w3.org/2000/svg' onload='alert(8)'/>\n--b--\n";
    deliver(&ben, "ben", message);
    let mail = newest(&ada, "inbox");
    let unid = mail.strip_prefix("/message/").unwrap();
    let own_forms = "<form method=\"post\"";
    for path in [
        "/box/inbox".to_owned(),
        mail.clone(),
        format!("/write?reply={unid}"),
        format!("/write?forward={unid}"),
    ] {
        let page = ada.get(&path);
        assert_eq!(page.matches("<script").count(), 1, "{path}: {page}");
        for bad in [
            "onclick",
            "onerror",
            "javascript:",
            "<iframe",
            "http-equiv",
            "style=",
            "id=\"main\" class=\"skip\"",
        ] {
            let shown = page.replace("&lt;iframe", "");
            assert!(!shown.contains(bad), "{path} {bad}: {page}");
        }
        assert!(!page.contains("src=\"https://evil"), "{page}");
        assert_eq!(
            page.matches("<form").count(),
            page.matches(own_forms).count() + page.matches("<form class=").count(),
            "{page}"
        );
    }
    let page = ada.get(&mail);
    assert!(
        page.contains("<p>Hello</p>") && page.contains("1 image from elsewhere left out"),
        "{page}"
    );
    // Its files are downloads, never pages of this server.
    let mut rest = page.as_str();
    let mut files = 0;
    while let Some((_, after)) = rest.split_once(&format!("href=\"{mail}/file/")) {
        let name = after.split('"').next().unwrap();
        let file = ada.ask(&format!("{mail}/file/{name}"));
        assert_eq!(file.status, 200, "{name}");
        assert!(
            file.header("content-disposition")
                .unwrap()
                .starts_with("attachment;")
        );
        assert!(
            file.header("content-security-policy")
                .unwrap()
                .starts_with("sandbox")
        );
        (rest, files) = (after, files + 1);
    }
    assert_eq!(files, 2, "{page}");
}

#[test]
fn mails_can_not_be_sent_for_somebody() {
    let server = start();
    let (ada, ben) = two_users(&server);
    let fields = [("to", "ben"), ("subject", "Forged"), ("do", "send")];
    let foreign = ("sec-fetch-site", "cross-site");
    assert_eq!(write_as(&ada, &[foreign], &fields, &[]).status, 403);
    assert_eq!(write_as(&ada, &[], &fields, &[]).status, 403);
    let other = Browser {
        proof: ben.proof.clone(),
        cookie: ada.cookie.clone(),
        server: &server,
    };
    assert_eq!(write(&other, &fields, &[]).status, 403);
    let nobody = Browser {
        proof: String::new(),
        cookie: String::new(),
        server: &server,
    };
    assert_eq!(write(&nobody, &fields, &[]).status, 401);
    assert!(ben.get("/box/inbox").contains("Nothing here"));
    // Line breaks inject no header.
    let fields = [
        ("to", "ben"),
        ("subject", "a\r\nBcc: ada@localhost"),
        ("do", "send"),
    ];
    let reply = write(&ada, &fields, &[]);
    assert_eq!(reply.status, 400, "{}", text(&reply));
    // A body that is too large is rejected before all of it has arrived.
    let large = vec![b'x'; 25 << 20];
    let reply = write(&ada, &fields, &[("a", "text/plain", &large)]);
    assert_eq!(reply.status, 413);
    assert!(
        text(&reply).contains("<h1>Too large</h1>"),
        "{}",
        text(&reply)
    );
}

#[test]
fn own_folders_come_and_go() {
    let server = start();
    let (ada, _) = two_users(&server);
    deliver(
        &ada,
        "ada",
        "From: ada@localhost\nTo: ada@localhost\nSubject: Keep\n\nx\n",
    );
    assert_eq!(ada.send("/folders", &[("name", "Harbour <1>")]).status, 303);
    let taken = ada.send("/folders", &[("name", "inbox")]);
    assert!(
        taken.status == 422 && text(&taken).contains("id=\"name-wrong\""),
        "{}",
        text(&taken)
    );
    let page = ada.get("/folders");
    assert!(page.contains("Harbour &lt;1&gt;"), "{page}");
    let folder = between(&page, "href=\"/folders/", "\"").to_owned();
    let mail = newest(&ada, "inbox");
    assert_eq!(
        ada.send(&mail, &[("do", "move"), ("to", &folder)]).status,
        303
    );
    assert!(ada.get(&format!("/box/{folder}")).contains("Keep"));
    let path = format!("/folders/{folder}");
    assert_eq!(
        ada.send(&path, &[("do", "rename"), ("name", "Quay")])
            .status,
        303
    );
    assert!(ada.get("/box/inbox").contains("Quay"));
    assert_eq!(ada.send(&path, &[("do", "delete")]).status, 303);
    assert!(ada.get("/box/archive").contains("Keep"));
}
