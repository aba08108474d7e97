//! Written messages are read back, other programs' files are read, and all reads are bounded.

use std::io::Cursor;

use groupware_mailfiles::{Flags, Maildir, MaildirWriter, Mbox, Message, Put, Read, write_mbox};
use proptest::prelude::*;

const MOST: usize = 4096;

fn flags() -> impl Strategy<Value = Flags> {
    any::<[bool; 6]>().prop_map(
        |[read, answered, flagged, forwarded, draft, trashed]| Flags {
            read,
            answered,
            flagged,
            forwarded,
            draft,
            trashed,
        },
    )
}

/// Generates bytes that are hard to parse: separators, quoted ones, line ends of all kinds.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        Just(b"From ada Sat Jan  3 01:05:34 1996".to_vec()),
        Just(b">>From ".to_vec()),
        Just(b">From x".to_vec()),
        Just(b"Status: RO".to_vec()),
        Just(b"X-Status: AF".to_vec()),
        Just(b"X-Keywords: work".to_vec()),
        Just(b"X-Plimsoll: no-line-end".to_vec()),
        Just(b"Content-Length: 30".to_vec()),
        Just(Vec::new()),
        Just(vec![b'x'; 1500]),
        proptest::collection::vec(any::<u8>(), 0..40),
    ];
    let ends = [&b"\n"[..], b"\r\n", b"\r", b"\n\r", b""];
    let end = proptest::sample::select(ends.to_vec());
    proptest::collection::vec((line, end), 0..12).prop_map(|lines| {
        lines
            .into_iter()
            .flat_map(|(line, end)| [line, end.to_vec()].concat())
            .collect()
    })
}

fn keywords() -> impl Strategy<Value = Vec<String>> {
    proptest::sample::subsequence(vec!["$Junk", "Later", "T", "work", "x:,-_+"], 0..5)
        .prop_map(|words| words.into_iter().map(str::to_owned).collect())
}

fn message() -> impl Strategy<Value = Message> {
    let moment = (0_i64..4_000_000_000).prop_map(|seconds| Some(seconds * 1_000_000));
    let parts = (bytes(), moment, flags(), keywords());
    parts.prop_map(|(bytes, received_us, flags, keywords)| Message {
        bytes,
        received_us,
        flags,
        keywords,
    })
}

fn read(mbox: &[u8]) -> Vec<Read> {
    Mbox::new(Cursor::new(mbox), 1 << 20)
        .map(Result::unwrap)
        .collect()
}

proptest! {
    #[test]
    fn an_mbox_comes_back(messages in proptest::collection::vec(message(), 0..5)) {
        let mut file = Vec::new();
        for message in &messages {
            write_mbox(&mut file, message).unwrap();
        }
        let most = messages.iter().map(|message| message.bytes.len()).max().unwrap_or_default();
        let read: Vec<Read> = Mbox::new(Cursor::new(file), most).map(Result::unwrap).collect();
        let expected: Vec<Read> = messages.into_iter().map(Read::Message).collect();
        prop_assert_eq!(read, expected);
    }

    #[test]
    fn a_maildir_comes_back(messages in proptest::collection::vec(message(), 0..5), name: String) {
        let folder = tempfile::tempdir().unwrap();
        let writer = MaildirWriter::new(folder.path()).unwrap();
        let name: String = name.chars().filter(|letter| *letter != '\0').take(20).collect();
        let name = Some(name).filter(|name| !name.is_empty());
        let to = writer.folder(name.as_deref()).unwrap();
        for (number, message) in messages.iter().enumerate() {
            let unique = format!("{number}.x");
            for is_new in [true, false] {
                let put = writer.write(&to, &unique, message).unwrap();
                prop_assert_eq!(put, Put { is_new, left_out: 0 });
            }
        }
        let maildir = Maildir::open(folder.path()).unwrap();
        let found = maildir.folders().unwrap().into_iter().find(|it| it.name == name).unwrap();
        let found: Vec<Read> = found.messages(1 << 20).unwrap().map(Result::unwrap).collect();
        let expected: Vec<Read> = messages.into_iter().map(Read::Message).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn no_mbox_panics_or_passes_the_bound(bytes in bytes()) {
        for most in [0, 3, 100] {
            for read in Mbox::new(Cursor::new(&bytes), most) {
                if let Read::Message(message) = read.unwrap() {
                    prop_assert!(message.bytes.len() <= most);
                }
            }
        }
    }
}

#[test]
fn what_other_programs_write_is_read() {
    let mbox = b"preface\n\nFrom god@heaven.af.mil Sat Jan  3 01:05:34 1996\nStatus: RO\nSubject: 1\n\
        X-Status: A\n\nText\n>From here\n>>From there\n\nFrom  x y  Tue Jul 23 19:39:23 +0200 2002\r\n\
        Subject: 2\r\nx-keywords: work  $Junk (no) \r\n\r\nText\r\n";
    let read = read(mbox);
    let [Read::Message(one), Read::Message(two)] = &read[..] else {
        panic!("{read:?}");
    };
    // The message's own fields stay in place.
    let text = "Status: RO\nSubject: 1\nX-Status: A\n\nText\nFrom here\n>From there\n";
    assert_eq!(String::from_utf8_lossy(&one.bytes), text);
    assert_eq!(one.received_us, Some(820_631_134_000_000));
    assert!(one.flags.read && one.flags.answered && !one.flags.flagged);
    let text = b"Subject: 2\r\nx-keywords: work  $Junk (no) \r\n\r\nText\r\n";
    assert_eq!(two.bytes, text);
    assert_eq!(two.keywords, ["$Junk", "work"]);
    assert_eq!(two.received_us, Some(1_027_453_163_000_000));
}

/// Returns the texts of the messages of an mbox.
fn texts(mbox: &str) -> Vec<String> {
    let read = read(mbox.as_bytes()).into_iter();
    let texts = read.map(|read| match read {
        Read::Message(message) => String::from_utf8(message.bytes).unwrap(),
        Read::TooLarge(place) => panic!("{place}"),
    });
    texts.collect()
}

const BEGUN: &str = "From ada@pier.example Mon Nov 23 09:30:00 2026\n";

#[test]
fn keeps_lines_that_only_look_like_separators() {
    for text in [
        "Dear all,\n\nFrom the harbour, with thanks.\nFrom now on we meet at 9.\n",
        "From the first line on\n",
        // A date without a preceding empty line, and an empty line without a following date.
        "He wrote:\nFrom ada Mon Nov 23 09:30:00 2026\n",
        "\nFrom Monday Nov 23 on we meet at 09:30.\n",
        "\nFrom ada Mon Nov 33 09:30:00 2026\n",
        "\n From ada Mon Nov 23 09:30:00 2026\n",
        "\n\n\nFrom\n",
    ] {
        let one = format!("Subject: 1\n\n{text}");
        let mbox = format!("{BEGUN}{one}\n{BEGUN}Subject: 2\n\nx\n");
        assert_eq!(texts(&mbox), [one.as_str(), "Subject: 2\n\nx\n"], "{text}");
        let mbox = mbox.replace('\n', "\r\n");
        assert_eq!(texts(&mbox)[0], one.replace('\n', "\r\n"), "{text}");
    }
}

#[test]
fn reads_separators_of_many_programs() {
    for begun in [
        "From ada@pier.example Mon Nov 23 09:30:00 2026",
        "From ada@pier.example Mon Nov 23 09:30 2026",
        "From - Mon Nov 23 09:30:00 2026",
        "From ???@??? Mon Nov 23 09:30:00 2026",
        "From 1234567890@xxx Mon Nov 23 09:30:00 +0000 2026",
        "From  ada at pier.example  Mon Nov  3 09:30:00 2026",
        "From ada Mon Nov 23 09:30:00 CET 2026 remote from pier",
    ] {
        let mbox = format!("{begun}\nA: 1\n\nx\n\n{begun}\nA: 2\n\ny\n");
        assert_eq!(texts(&mbox), ["A: 1\n\nx\n", "A: 2\n\ny\n"], "{begun}");
    }
}

#[test]
fn reads_separators_without_a_date_by_the_field_behind_them() {
    let mbox = "From nobody\nA: 1\n\nFrom here on\nall is well\n\nFrom nobody\nA: 2\n\ny";
    let expected = ["A: 1\n\nFrom here on\nall is well\n", "A: 2\n\ny"];
    assert_eq!(texts(mbox), expected);
}

#[test]
fn a_content_length_counts_where_it_is_right() {
    let inner = format!("Hi\n\n{BEGUN}B: 1\n\nquoted\n");
    let mbox = |length: usize| {
        format!("{BEGUN}A: 1\nContent-Length: {length}\n\n{inner}\n{BEGUN}A: 2\n\nx\n")
    };
    let found = texts(&mbox(inner.len()));
    assert_eq!(found.len(), 2);
    assert!(found[0].ends_with(&inner) && found[1].starts_with("A: 2"));
    // At the end of the file, and without an empty line after the message.
    let alone = format!("{BEGUN}Content-Length: {}\n\n{inner}", inner.len());
    assert_eq!(texts(&alone).len(), 1);
    assert_eq!(texts(&format!("{alone}{BEGUN}A: 2\n\nx\n")).len(), 2);
    // A wrong `Content-Length` is ignored, and no line is lost.
    for wrong in [0, 5, inner.len() - 3, inner.len() + 3, 1000, 1 << 40] {
        let found = texts(&mbox(wrong));
        assert_eq!(found.len(), 3, "{wrong}");
        assert_eq!(found[1], "B: 1\n\nquoted\n", "{wrong}");
    }
}

#[test]
fn reads_no_mbox_out_of_other_files() {
    for other in [
        "",
        "\n",
        "From: Ada <ada@pier.example>\nSubject: 1\n\nFrom nobody\nNote: x\n",
        "A letter.\nFrom here on\nNote: x\n",
        "From here on there is only prose.\nNo field is in it.\n",
    ] {
        assert_eq!(texts(other), Vec::<String>::new(), "{other}");
    }
    let marked = format!("\u{feff}{BEGUN}A: 1\n\nx\n");
    assert_eq!(texts(&marked), ["A: 1\n\nx\n"]);
}

fn flags_of(letters: &str) -> Flags {
    Flags::of_letters(letters)
}

#[test]
fn reads_the_marks_of_other_programs() {
    for (head, letters, words) in [
        (
            "X-Mozilla-Status: 0001\nX-Mozilla-Status2: 00000000",
            "S",
            &[][..],
        ),
        ("X-Mozilla-Status: 0006", "FR", &[]),
        ("X-Mozilla-Status: 0009", "ST", &[]),
        (
            "X-Mozilla-Status: 1001\nX-Mozilla-Keys: $label1 work   ",
            "PS",
            &["$label1", "work"],
        ),
        (
            "X-Mozilla-Status: 0000\nX-Mozilla-Status2: 00200000",
            "T",
            &[],
        ),
        ("X-Mozilla-Status: nonsense", "", &[]),
        ("X-Gmail-Labels: Inbox,Starred,Unread", "F", &[]),
        (
            "X-Gmail-Labels: Archived,Opened,\"Harbour works\",\n Category Updates",
            "S",
            &["Harbour_works"],
        ),
        ("X-Gmail-Labels: Spam", "S", &["$Junk"]),
        ("X-Gmail-Labels: Draft,Trash", "DST", &[]),
        ("X-Keywords: $Forwarded work", "P", &["work"]),
        ("X-Keywords: $FORWARDED", "P", &[]),
        ("Status: RO\nSubject: x\nX-Status: F", "FS", &[]),
    ] {
        let mbox = format!("{BEGUN}{head}\nSubject: x\n\nX-Mozilla-Status: 0008\n");
        let [Read::Message(message)] = &read(mbox.as_bytes())[..] else {
            panic!("{head}");
        };
        assert_eq!(message.flags, flags_of(letters), "{head}");
        assert_eq!(message.keywords, words, "{head}");
    }
}

#[test]
fn reads_the_marks_of_names_of_all_kinds() {
    let folder = tempfile::tempdir().unwrap();
    let cur = folder.path().join("cur");
    std::fs::create_dir(&cur).unwrap();
    std::fs::write(
        folder.path().join("dovecot-keywords"),
        "0 $Forwarded\n1 work\n",
    )
    .unwrap();
    for (name, letters, words) in [
        ("1.a:2,S", "S", &[][..]),
        ("1.b;2,RS", "RS", &[]),
        ("1.c!2,F", "F", &[]),
        ("1.d:2,Sab", "PS", &["work"]),
        ("1.e", "", &[]),
        ("1.f2,S", "", &[]),
        ("1.g:2,S:2,F", "F", &[]),
    ] {
        let path = cur.join(name);
        std::fs::write(&path, "x").unwrap();
        let folders = Maildir::open(folder.path()).unwrap().folders().unwrap();
        let found: Vec<Read> = folders[0]
            .messages(9)
            .unwrap()
            .map(Result::unwrap)
            .collect();
        let [Read::Message(message)] = &found[..] else {
            panic!("{found:?}");
        };
        assert_eq!(message.flags, flags_of(letters), "{name}");
        assert_eq!(message.keywords, words, "{name}");
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn what_is_too_large_is_told_and_passed_over() {
    let mut mbox = b"From a Sat Jan  3 01:05:34 1996\n".to_vec();
    mbox.extend(vec![b'x'; MOST * 3]);
    mbox.extend(b"\n\nFrom b Sat Jan  3 01:05:34 1996\nsmall\n\n");
    let read: Vec<Read> = Mbox::new(Cursor::new(&mbox), MOST)
        .map(Result::unwrap)
        .collect();
    assert_eq!(read[0], Read::TooLarge("message 1".into()));
    assert!(matches!(&read[1], Read::Message(message) if message.bytes == b"small\n"));

    let folder = tempfile::tempdir().unwrap();
    let writer = MaildirWriter::new(folder.path()).unwrap();
    let to = writer.folder(None).unwrap();
    std::fs::write(to.join("new/1.large"), vec![b'x'; MOST + 1]).unwrap();
    std::fs::write(to.join("new/2.exact"), vec![b'x'; MOST]).unwrap();
    std::fs::write(to.join("cur/.hidden"), "x").unwrap();
    std::fs::create_dir(to.join("cur/folder")).unwrap();
    let inbox = Maildir::open(folder.path())
        .unwrap()
        .folders()
        .unwrap()
        .remove(0);
    let found: Vec<Read> = inbox.messages(MOST).unwrap().map(Result::unwrap).collect();
    assert!(
        matches!(&found[..], [Read::TooLarge(_), Read::Message(_)]),
        "{}",
        found.len()
    );
    assert!(Maildir::open(&folder.path().join("cur")).is_none());
}

/// The output of `doveadm backup` to `maildir:DIR:LAYOUT=fs`, to which stores of mboxes or in Dovecot's own format can
/// be copied.
#[test]
fn folders_in_each_other_are_folders() {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in [
        ("cur/1.a:2,", "inbox"),
        ("Archive/2020/cur/1.b:2,FS", "nested"),
        ("Archive/new/1.c", "above"),
        ("Entw&APw-rfe/v1.2/cur/1.d:2,S", "with a dot"),
        (".Beside/cur/1.e:2,", "as Maildir++ has it"),
        ("other/notes", "no mail"),
    ] {
        let file = folder.path().join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
    std::os::unix::fs::symlink(folder.path(), folder.path().join("around")).unwrap();
    let maildir = Maildir::open(folder.path()).unwrap();
    let found: Vec<_> = maildir
        .folders()
        .unwrap()
        .iter()
        .map(|it| {
            let read = it.messages(1000).unwrap().map(|read| read.unwrap());
            let texts = read.map(|read| match read {
                Read::Message(message) => String::from_utf8(message.bytes).unwrap(),
                Read::TooLarge(_) => panic!("{it:?}"),
            });
            (
                it.name.clone().unwrap_or_default(),
                texts.collect::<String>(),
            )
        })
        .collect();
    let expected = [
        ("", "inbox"),
        ("Archive", "above"),
        ("Archive/2020", "nested"),
        ("Beside", "as Maildir++ has it"),
        ("Entw\u{fc}rfe/v1.2", "with a dot"),
    ];
    let expected = expected.map(|(name, text)| (name.to_owned(), text.to_owned()));
    assert_eq!(found, expected);
}
