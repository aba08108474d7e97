//! Mail as written by many programs: its page, and the beginning of a reply.

use crate::browser::{Browser, between, text, two_users};
use crate::support::{send, start};

/// Delivers a message to its author, and opens its page.
fn open(browser: &Browser<'_>, message: &[u8]) -> (String, String) {
    let headers = [
        ("cookie", browser.cookie.as_str()),
        ("content-type", "message/rfc822"),
    ];
    let address = browser.server.address();
    let path = "/mail/ada/api/mail/outbox";
    let reply = send(address, "POST", path, &headers, message);
    assert_eq!(reply.status, 201, "{}", text(&reply));
    let list = browser.get("/box/inbox");
    let unid = between(&list, "href=\"/message/", "\"").to_owned();
    let page = browser.get(&format!("/message/{unid}"));
    (page, unid)
}

const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// Fields and body of a message, texts on its page, and texts that are not on it.
type Case<'a> = (&'a str, &'a [&'a str], &'a [&'a str]);

const TEXTS: [Case<'_>; 15] = [
    (
        "Content-Type: text/html\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n<p>100 =% gr=C3=BCn",
        &["<p>100 =% grün</p>"],
        &["=C3"],
    ),
    (
        "Content-Transfer-Encoding: base64 (x)\r\n\r\nVGhlIHBpZXIgaXMgY2xvc2VkLg==\r\n\r\n____\r\nPier list\r\n",
        &["The pier is closed.", "Pier list"],
        &["VGhl"],
    ),
    (
        "Content-Type: text/plain; format=flowed\r\n\r\nThe pier \r\nis closed.\r\n",
        &["The pier is closed."],
        &[],
    ),
    (
        "Content-Type: multipart/mixed; boundary=wrong\r\n\r\n--right\r\n\r\nsome text\r\n--right--\r\n",
        &["some text"],
        &["no text"],
    ),
    (
        "Content-Type: text/markdown\r\n\r\n# Pier\r\n",
        &["# Pier"],
        &["no text", "1 file"],
    ),
    (
        "Content-Type: text/html\r\n\r\n<p>Dear <b>crew</b></p><svg><circle r=4 /></svg><select><option>a</select><p>pier",
        &["<p>Dear <b>crew</b></p>", "<p>pier</p>"],
        &["too intricate", "<option>"],
    ),
    (
        "Content-Type: text/html\r\n\r\n<div style='display:none'>preview</div><p>letter",
        &["<p>letter</p>"],
        &["preview"],
    ),
    (
        "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nletter\r\n--b\r\nContent-Type: text/html; name=\"report.html\"\r\n\r\n<p>page\r\n--b--\r\n",
        &["letter", "1 file", "report.html"],
        &["<p>page"],
    ),
    (
        "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nletter\r\n--b\r\nContent-Type: application/pdf\r\nContent-Disposition: attachment; filename*=utf-8''plan%E2%80%AEfdp.exe\r\n\r\nx\r\n--b--\r\n",
        &["<bdi>planfdp.exe</bdi>"],
        &["\u{202e}"],
    ),
    (
        "Content-Type: text/plain; charset=utf-8\r\n\r\nPay at https://bad.example/\u{202e}.moc.knab//:sptth now",
        &["<bdi>https://bad.example/</bdi></a>.moc"],
        &["\u{202e}"],
    ),
    (
        "Subject: invoice \u{202e}gnp.exe\r\n\r\nx",
        &["<bdi>invoice gnp.exe</bdi>"],
        &["\u{202e}"],
    ),
    (
        "Subject: =?utf-8?Q?Fr=C3?=\r\n =?utf-8?Q?=BChjahr?=\r\n\r\nx",
        &["Frühjahr"],
        &["\u{fffd}"],
    ),
    (
        "X: y\r\n\r\nSee:\r\nbegin 644 plan.txt\r\n\"2&D \r\n`\r\nend\r\nBye\r\n",
        &["See:", "Bye", "plan.txt"],
        &["begin 644"],
    ),
    (
        "Content-Type: text/plain; charset=cp932\r\nContent-Transfer-Encoding: base64\r\n\r\njWCCzJXUjpY=\r\n",
        &["港の返事"],
        &[],
    ),
    (
        "Content-Type: text/html\r\n\r\n<a href=https://evil.example>\u{202e}knab</a><bdo dir=rtl>x</bdo>",
        &[">knab</a>"],
        &["\u{202e}", "<bdo"],
    ),
];

#[test]
fn pages_show_mail_as_programs_write_it() {
    let server = start();
    let (ada, _) = two_users(&server);
    for (message, shown, hidden) in TEXTS {
        let message = format!("From: ada@localhost\r\nTo: ada@localhost\r\n{message}");
        let (page, _) = open(&ada, message.as_bytes());
        for part in shown {
            assert!(page.contains(part), "{message}\n{part}\n{page}");
        }
        for part in hidden {
            assert!(!page.contains(part), "{message}\n{part}\n{page}");
        }
    }
    let raw = b"From: ada@localhost\r\nTo: ada@localhost\r\nSubject: Gr\xfc\xdfe aus dem S\xfcden\r\n\r\nSch\xf6ne Gr\xfc\xdfe und alles Gute";
    let (page, _) = open(&ada, raw);
    assert!(
        page.contains("Grüße aus dem Süden") && page.contains("Schöne Grüße und alles Gute"),
        "{page}"
    );
}

#[test]
fn all_texts_and_pictures_stand_in_their_order() {
    let server = start();
    let (ada, _) = two_users(&server);
    let message = format!(
        "From: ada@localhost\r\nTo: ada@localhost\r\nContent-Type: multipart/alternative; boundary=a\r\n\r\n\
         --a\r\n\r\nplain words\r\n--a\r\nContent-Type: multipart/mixed; boundary=m\r\n\r\n\
         --m\r\nContent-Type: text/html\r\n\r\n<p>before\r\n\
         --m\r\nContent-Type: image/jpg; name=pier.png\r\nContent-Disposition: inline\r\n\
         Content-Transfer-Encoding: base64\r\n\r\n{PNG}\r\n\
         --m\r\nContent-Type: text/html\r\n\r\n<p>after\r\n--m--\r\n--a--\r\n"
    );
    let (page, unid) = open(&ada, message.as_bytes());
    let places = ["before</p>", "pier.png\" alt=", "after</p>"].map(|part| page.find(part));
    assert!(places.is_sorted() && places[0].is_some(), "{page}");
    assert!(
        !page.contains("plain words") && !page.contains("1 file"),
        "{page}"
    );
    let picture = ada.ask(&format!("/message/{unid}/file/pier.png"));
    assert_eq!(picture.header("content-type"), Some("image/png"));
    let as_text = ada.get(&format!("/message/{unid}?as=text"));
    assert!(
        as_text.contains("plain words") && !as_text.contains("before"),
        "{as_text}"
    );
    let answer = ada.get(&format!("/write?reply={unid}"));
    assert!(answer.contains("&gt; plain words"), "{answer}");
    let passed_on = ada.get(&format!("/write?forward={unid}"));
    assert!(passed_on.contains("pier.png"), "{passed_on}");
}

#[test]
fn pictures_in_html_are_shown_and_nothing_else_of_their_kind() {
    let server = start();
    let (ada, _) = two_users(&server);
    let html = |src: &str| {
        format!(
            "From: ada@localhost\r\nTo: ada@localhost\r\nContent-Type: multipart/related; boundary=r\r\n\r\n\
             --r\r\nContent-Type: text/html\r\n\r\n<p>pier<img src=\"{src}\">\r\n\
             --r\r\nContent-Type: application/octet-stream; name=p.png\r\nContent-ID: <a+b@pier.example>\r\n\
             Content-Location: http://pier.example/p.png\r\nContent-Transfer-Encoding: base64\r\n\r\n{PNG}\r\n--r--\r\n"
        )
    };
    for src in [
        "cid:a%2Bb%40pier.example",
        "http://pier.example/p.png",
        "p.png",
    ] {
        let (page, unid) = open(&ada, html(src).as_bytes());
        assert!(
            page.contains(&format!("<img src=\"/message/{unid}/file/p.png\">")),
            "{page}"
        );
        assert!(!page.contains("1 file"), "{page}");
    }
    let (page, unid) = open(
        &ada,
        html(&format!("data:image/png;base64,{PNG}")).as_bytes(),
    );
    assert!(
        page.contains("<img src=\"data:image/png;base64,") && page.contains("1 file"),
        "{page}"
    );
    let policy = |path: &str| {
        let reply = ada.ask(path);
        reply.header("content-security-policy").unwrap().to_owned()
    };
    assert!(policy(&format!("/message/{unid}")).contains("img-src 'self' data:;"));
    assert!(
        !policy(&format!("/message/{unid}?as=text")).contains("data:") || page.contains("1 file")
    );
    assert!(!policy("/box/inbox").contains("data:"));
}

#[test]
fn names_show_their_address_in_front_of_whoever_answers() {
    let server = start();
    let (ada, _) = two_users(&server);
    for (from, name) in [
        ("Quay, Ada <ada@localhost>", "Quay, Ada"),
        ("=?utf-8?B?QW7DqSBRdWF5?= <ada@localhost>", "Ané Quay"),
        (
            "=?utf-8?Q?Fr=C3?= =?utf-8?Q?=BCh?= <@relay.example:ada@localhost>",
            "Früh",
        ),
        ("=?utf-8?B?4oCubW9jLmtuYWI=?= <ada@localhost>", "moc.knab"),
    ] {
        let message = format!("From: {from}\r\nTo: ada@localhost\r\nReply-To: {from}\r\n\r\nx");
        let (page, unid) = open(&ada, message.as_bytes());
        assert!(page.contains(&format!("<bdi>{name}</bdi>")), "{page}");
        assert!(page.contains("&lt;<bdi>ada@localhost</bdi>&gt;"), "{page}");
        let answer = ada.get(&format!("/write?reply={unid}"));
        let to = between(&answer, "name=\"to\"", ">");
        assert!(to.contains("ada@localhost"), "{answer}");
    }
}
