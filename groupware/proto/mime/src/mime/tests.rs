//! Tests of parts as many programs write them.

use super::*;

fn shape(message: &str) -> String {
    let parts = parts(message.as_bytes());
    let shown = parts.iter().map(|part| match part.is_multipart() {
        true => part.kind.clone(),
        false => format!("{} {} {:?}", part.kind, part.name, part.text()),
    });
    shown.collect::<Vec<_>>().join("\n")
}

#[test]
fn parts_are_told_apart() {
    let message = "Content-Type: multipart/mixed; boundary=\"a\"\r\n\r\npreamble\r\n\
        --a\r\nContent-Type: multipart/alternative; boundary=aa\r\n\r\n\
        --aa\r\n\r\nplain\r\n--aa\r\nContent-Type: text/html; charset=iso-8859-1\r\n\
        Content-Transfer-Encoding: quoted-printable\r\n\r\n<p>=E9</p>\r\n--aa--\r\n\
        --a\r\nContent-Type: application/pdf; name=\"../x/r.pdf\"\r\n\
        Content-Disposition: attachment\r\nContent-Transfer-Encoding: base64\r\n\r\naGk=\r\n\
        --a \r\nContent-Type: message/rfc822\r\n\r\nSubject: inner\r\n\r\nb\r\n--a--\r\nend\r\n";
    assert_eq!(
        shape(message),
        "multipart/mixed\nmultipart/alternative\ntext/plain part-2.txt \"plain\"\n\
         text/html part-3.html \"<p>é</p>\"\napplication/pdf r.pdf \"hi\"\n\
         message/rfc822 part-5.eml \"Subject: inner\\r\\n\\r\\nb\""
    );
}

#[test]
fn what_is_broken_is_shown_as_it_stands() {
    assert_eq!(shape("no head"), "text/plain part-0.txt \"no head\"");
    assert_eq!(shape("\n\u{fc}"), "text/plain part-0.txt \"ü\"");
    assert_eq!(
        shape("Content-Type: multipart/mixed; boundary=a\n\n--a\n\nno end"),
        "multipart/mixed\ntext/plain part-1.txt \"no end\""
    );
    assert_eq!(
        shape("Content-Type: multipart/mixed\n\nno boundary"),
        "text/plain part-0.txt \"no boundary\""
    );
    assert_eq!(
        shape("Content-Transfer-Encoding: base64\n\n!!"),
        "text/plain part-0.txt \"!!\""
    );
    assert_eq!(
        shape("Content-Type: text/plain; charset=no-such\n\n\u{fc}"),
        "text/plain part-0.txt \"ü\""
    );
}

#[test]
fn equal_names_are_made_different() {
    let part = "--a\nContent-Disposition: attachment; filename=x.txt\n\n1\n";
    let message = format!(
        "Content-Type: multipart/mixed; boundary=a\n\n{part}{part}--a\nContent-Disposition: \
         attachment; filename=2-x.txt\n\n2\n--a--"
    );
    let parts = parts(message.as_bytes());
    let names: HashSet<_> = parts.iter().map(|part| &part.name).collect();
    assert_eq!(names.len(), parts.len());
}

#[test]
fn nesting_and_numbers_are_bounded() {
    let mut deep = String::new();
    for level in 0..5000 {
        deep += &format!("Content-Type: multipart/mixed; boundary=b{level}\n\n--b{level}\n");
    }
    assert_eq!(parts(deep.as_bytes()).len(), limits::PART_LEVELS + 1);
    let messages = "Content-Type: message/rfc822\n\n".repeat(300_000);
    assert_eq!(parts(messages.as_bytes()).len(), 1);
    let wide = format!(
        "Content-Type: multipart/mixed; boundary=b\n\n{}",
        "--b\n\n".repeat(100_000)
    );
    assert!(parts(wide.as_bytes()).len() <= limits::PARTS + 1);
}

#[test]
fn multiparts_without_parts_are_text() {
    let text = "text/plain part-0.txt";
    for (kind, body, expected) in [
        (
            "multipart/mixed; boundary=bb",
            "the pier",
            format!("{text} \"the pier\""),
        ),
        (
            "multipart/alternative; boundary=bb",
            "--aa\n\nx\n--aa--",
            format!("{text} \"--aa\\n\\nx\\n--aa--\""),
        ),
        (
            "multipart/mixed; boundary=\"\"",
            "the pier",
            format!("{text} \"the pier\""),
        ),
        ("multipart", "the pier", format!("{text} \"the pier\"")),
        (
            "multipart/mixed; boundary=\"bb \"",
            "--bb\n\nx\n--bb--",
            "multipart/mixed\ntext/plain part-1.txt \"x\"".to_owned(),
        ),
        (
            "multipart/mixed; boundary=bb",
            "--bb \n\nx\n--bb-- ",
            "multipart/mixed\ntext/plain part-1.txt \"x\"".to_owned(),
        ),
    ] {
        assert_eq!(
            shape(&format!("Content-Type: {kind}\n\n{body}")),
            expected,
            "{kind}"
        );
    }
    let long = "x".repeat(200);
    let message =
        format!("Content-Type: multipart/mixed; boundary={long}\n\n--{long}\n\nx\n--{long}--\n");
    assert_eq!(
        shape(&message),
        "multipart/mixed\ntext/plain part-1.txt \"x\""
    );
}

#[test]
fn texts_of_unknown_kinds_are_plain_text() {
    for kind in [
        "text/markdown",
        "text/x-odd",
        "charset=utf-8",
        "text",
        "text/",
        "/plain",
        "; x=y",
        "a/b/c",
        "no type",
    ] {
        let message = format!("Content-Type: {kind}\n\n# pier");
        let parts = parts(message.as_bytes());
        assert!(parts[0].is_text() && !parts[0].is_html(), "{kind}");
        assert_eq!(parts[0].text(), "# pier", "{kind}");
    }
    for kind in [
        "text/calendar",
        "text/vcard",
        "application/pdf",
        "image/png",
    ] {
        let message = format!("Content-Type: {kind}\n\nx");
        assert!(parts(message.as_bytes())[0].is_attachment(), "{kind}");
    }
}

#[test]
fn text_behind_fields_without_an_empty_line_is_content() {
    assert_eq!(
        shape("just some text\r\nwithout any head\r\n"),
        "text/plain part-0.txt \"just some text\\r\\nwithout any head\\r\\n\""
    );
    assert_eq!(
        shape("Received: x\r\n (y)\r\njust some text\r\nmore: text\r\n"),
        "text/plain part-0.txt \"just some text\\r\\nmore: text\\r\\n\""
    );
    assert_eq!(shape("Subject: x\r\n"), "text/plain part-0.txt \"\"");
}

#[test]
fn content_is_decoded_leniently() {
    for (head, body, text) in [
        ("Content-Transfer-Encoding: base64 (x)", "SGk=", "Hi"),
        (
            "Content-Transfer-Encoding: base64\nContent-Transfer-Encoding: 8bit",
            "SGk=",
            "Hi",
        ),
        (
            "Content-Transfer-Encoding: base64",
            "SGk=\n\n____\nPier list\n",
            "Hi\n____\nPier list\n",
        ),
        (
            "Content-Transfer-Encoding: quoted-printable",
            "100 =% Gr=C3=BCn",
            "100 =% Grün",
        ),
        (
            "Content-Transfer-Encoding: x-uuencode",
            "begin 644 a\n\"2&D \n`\nend\n",
            "Hi",
        ),
        (
            "Content-Type: text/plain; format=flowed",
            "The pier \nis closed.\n",
            "The pier is closed.\r\n",
        ),
        (
            "Content-Type: text/plain; format=Flowed; DelSp=Yes",
            "clo \nsed\n",
            "closed\r\n",
        ),
        (
            "Content-Type: text/html",
            "<meta charset=koi8-r>x",
            "<meta charset=koi8-r>x",
        ),
    ] {
        let message = format!("{head}\n\n{body}");
        assert_eq!(parts(message.as_bytes())[0].text(), text, "{head}");
    }
    let file = "Content-Type: application/zip\nContent-Transfer-Encoding: base64\n\nUEsDBA==\n\n____\nScanned\n";
    assert_eq!(&*parts(file.as_bytes())[0].data(), b"PK\x03\x04");
}

#[test]
fn files_within_a_text_are_parts() {
    let file = "begin 644 ../plan.txt\n\"2&D \n`\nend\n";
    let message = format!("Subject: x\n\nSee the plan:\n\n{file}\nand this one:\n{file}");
    assert_eq!(
        shape(&message),
        "text/plain part-0.txt \"See the plan:\\n\\n\"\napplication/octet-stream plan.txt \"Hi\"\n\
         text/plain part-2.txt \"\\nand this one:\\n\"\napplication/octet-stream 3-plan.txt \"Hi\""
    );
    let many = format!("\n{}", file.repeat(5000));
    assert!(parts(many.as_bytes()).len() <= limits::PARTS + 1);
}

#[test]
fn names_of_files_are_safe_and_keep_their_ends() {
    for (name, expected) in [
        ("../../etc/passwd", "passwd".to_owned()),
        ("C:\\temp\\plan.pdf", "plan.pdf".to_owned()),
        (".hidden", "hidden".to_owned()),
        ("plan\u{202e}fdp.exe", "planfdp.exe".to_owned()),
        ("a\u{2066}b\u{2069}\u{200f}\u{61c}.txt", "ab.txt".to_owned()),
        ("a\u{200b}b\u{2060}c\u{feff}.txt", "abc.txt".to_owned()),
        ("a\r\nb\0.txt", "a__b_.txt".to_owned()),
        (
            &format!("{}.pdf", "y".repeat(300)),
            format!("{}.pdf", "y".repeat(196)),
        ),
        (
            &format!("{}.pdf", "ü".repeat(300)),
            format!("{}.pdf", "ü".repeat(98)),
        ),
        (
            &format!("a.{}", "y".repeat(300)),
            format!("a.{}", "y".repeat(198)),
        ),
    ] {
        assert_eq!(safe_name(name), expected, "{name}");
    }
}

#[test]
fn pictures_are_known_by_their_content() {
    let png = "Content-Transfer-Encoding: base64\n\niVBORw0KGgoAAAANSUhEUgAA";
    for kind in [
        "image/png",
        "image/jpg",
        "image/x-png",
        "application/octet-stream",
        "image/pjpeg",
    ] {
        let message = format!("Content-Type: {kind}\n{png}");
        assert_eq!(
            parts(message.as_bytes())[0].picture(),
            Some("image/png"),
            "{kind}"
        );
    }
    for message in [
        "Content-Type: image/svg+xml\n\n<svg/>",
        "Content-Type: image/png\n\nx",
        "Content-Type: image/gif\n\n",
        &format!("Content-Type: text/html\n{png}"),
    ] {
        assert_eq!(parts(message.as_bytes())[0].picture(), None, "{message}");
    }
}

#[test]
fn parts_know_how_many_are_in_them() {
    let message = "Content-Type: multipart/mixed; boundary=a\n\n--a\nContent-Type: multipart/related; boundary=b\n\n--b\n\n1\n--b\n\n2\n--b--\n--a\n\n3\n--a--";
    let inner: Vec<usize> = parts(message.as_bytes())
        .iter()
        .map(|part| part.inner)
        .collect();
    assert_eq!(inner, [4, 2, 0, 0, 0]);
}
