//! Parses lines of a log that was sent by syslog: the prefix of the message (RFC 3164, RFC 5424, and files of rsyslog).

/// The message of a line, without syslog's prefix; `None` for a line without that.
pub(super) fn message(line: &[u8]) -> Option<&[u8]> {
    if let Some(rest) = priority(line) {
        return structured(rest).or_else(|| tagged(after_stamp(rest)?));
    }
    tagged(after_stamp(line)?)
}

/// The rest after `<134>`.
fn priority(line: &[u8]) -> Option<&[u8]> {
    let rest = line.strip_prefix(b"<")?;
    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    (1..=3)
        .contains(&digits)
        .then(|| rest[digits..].strip_prefix(b">"))?
}

/// The rest after `1 STAMP HOST PROGRAM PROCESS MESSAGE-ID -`, or a list of values in brackets in the place of `-`.
fn structured(line: &[u8]) -> Option<&[u8]> {
    let mut rest = line.strip_prefix(b"1 ")?;
    for _ in 0..5 {
        rest = word(rest)?.1;
    }
    if let Some(rest) = rest.strip_prefix(b"- ") {
        return Some(rest);
    }
    let end = rest.windows(2).position(|two| two == b"] ");
    rest.starts_with(b"[").then(|| rest.get(end? + 2..))?
}

/// The rest after `Feb  6 12:14:14 ` or `2026-11-30T05:12:33.123456+00:00 `.
fn after_stamp(line: &[u8]) -> Option<&[u8]> {
    let is = |shape: &[u8]| {
        let fits = |(byte, shape): (&u8, &u8)| match shape {
            b'a' => byte.is_ascii_alphabetic(),
            b'0' => byte.is_ascii_digit(),
            b'_' => *byte == b' ' || byte.is_ascii_digit(),
            other => byte == other,
        };
        line.len() > shape.len() && line.iter().zip(shape).all(fits)
    };
    if is(b"aaa _0 00:00:00 ") {
        return line.get(16..);
    }
    is(b"0000-00-00T00:00:00")
        .then(|| word(line).map(|(_, rest)| rest))
        .flatten()
}

/// The rest after `HOST PROGRAM[PROCESS]: `, with or without the host.
fn tagged(line: &[u8]) -> Option<&[u8]> {
    let (first, rest) = word(line)?;
    if is_tag(first) {
        return Some(rest);
    }
    let (second, rest) = word(rest)?;
    is_tag(second).then_some(rest)
}

fn is_tag(word: &[u8]) -> bool {
    let Some(name) = word.strip_suffix(b":") else {
        return false;
    };
    let is_letter = |b: &u8| b.is_ascii_alphanumeric() || b"_-./[]".contains(b);
    name.first().is_some_and(u8::is_ascii_alphabetic) && name.iter().all(is_letter)
}

fn word(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = line.iter().position(|b| *b == b' ')?;
    Some((&line[..end], &line[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_message_behind_each_form_of_a_prefix() {
        for prefix in [
            "Feb  6 12:14:14 localhost haproxy[14389]: ",
            "Nov 30 05:12:33 web-1 nginx: ",
            "<134>Nov 30 05:12:33 haproxy[812]: ",
            "2026-11-30T05:12:33.123456+00:00 lb haproxy[1]: ",
            "<134>1 2026-11-30T05:12:33.123Z lb haproxy 812 - - ",
            "<134>1 2026-11-30T05:12:33Z lb haproxy 812 - [a@1 b=\"c\"] ",
        ] {
            let line = format!("{prefix}10.0.1.2:33317 [x] y");
            let found = message(line.as_bytes());
            assert_eq!(found, Some(&b"10.0.1.2:33317 [x] y"[..]), "{line}");
        }
    }

    #[test]
    fn a_line_without_a_prefix_has_none() {
        for line in [
            "",
            "<",
            "<134>",
            "<1344>Nov 30 05:12:33 a: b",
            "<134>1 a b",
            "Feb  6 12:14:14",
            "Feb  6 12:14:14 host message",
            "10.0.1.2 - - [10/Oct/2026:13:55:36 +0000] \"GET / HTTP/1.1\" 200 1",
            "2026-11-30T05:12:33Z 10.0.1.2 GET /",
            "2026-11-30T05:12:33Z ::1: 9: GET /",
        ] {
            assert_eq!(message(line.as_bytes()), None, "{line}");
        }
    }
}
