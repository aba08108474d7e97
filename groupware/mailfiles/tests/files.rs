//! What is written comes back; what other programs write is read; nothing is read without a bound.

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

/// Bytes that tempt a reader: lines that part messages, quoted ones, ends of all kinds.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        Just(b"From ada Sat Jan  3 01:05:34 1996".to_vec()),
        Just(b">>From ".to_vec()),
        Just(b">From x".to_vec()),
        Just(b"Status: RO".to_vec()),
        Just(b"X-Status: AF".to_vec()),
        Just(b"X-Keywords: work".to_vec()),
        Just(b"X-Plimsoll: no-line-end".to_vec()),
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
        Subject: 2\r\nx-keywords: work  $Junk (no) \r\n\r\nText\r\n\r\nFrom nobody\nSubject: 3\n\nNo end";
    let read = read(mbox);
    let [Read::Message(one), Read::Message(two), Read::Message(three)] = &read[..] else {
        panic!("{read:?}");
    };
    // Its own fields stay where they are.
    let text = "Status: RO\nSubject: 1\nX-Status: A\n\nText\nFrom here\n>From there\n";
    assert_eq!(String::from_utf8_lossy(&one.bytes), text);
    assert_eq!(one.received_us, Some(820_631_134_000_000));
    assert!(one.flags.read && one.flags.answered && !one.flags.flagged);
    let text = b"Subject: 2\r\nx-keywords: work  $Junk (no) \r\n\r\nText\r\n";
    assert_eq!(two.bytes, text);
    assert_eq!(two.keywords, ["$Junk", "work"]);
    assert_eq!(two.received_us, Some(1_027_453_163_000_000));
    assert_eq!(
        (&three.bytes[..], three.received_us),
        (&b"Subject: 3\n\nNo end"[..], None)
    );
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

/// As `doveadm backup` writes it into `maildir:DIR:LAYOUT=fs`, which is what a store of mboxes or of its own
/// form can be copied to.
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
