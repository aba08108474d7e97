//! Receives the text of a message: removes its dot-stuffing, and finds its end.
//!
//! Only CR LF ends a line and only CR LF `.` CR LF ends the text (RFC 5321, 4.1.1.4). A bare CR or
//! LF could be a line end to the next server, and so smuggle in another message: such a text is
//! read to its end and rejected. Lines may be as long as the whole text (RFC 5322, 2.1.1): some
//! programs write HTML without line ends.

/// Why a text is rejected after it was read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// A CR without LF, or an LF without CR.
    BareLineEnd,
    /// It exceeds the size limit.
    TooLarge,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineState {
    LineStart,
    /// After a dot that begins a line.
    Dot,
    /// After that dot and a CR.
    DotCr,
    Line,
    Cr,
}

/// Receives the text in pieces.
#[derive(Debug)]
pub struct Text {
    bytes: Vec<u8>,
    most: usize,
    state: LineState,
    flaw: Option<Flaw>,
    seen: usize,
}

impl Text {
    /// Starts a text of at most so many bytes.
    pub fn new(most: usize) -> Self {
        Self {
            bytes: Vec::new(),
            most,
            state: LineState::LineStart,
            flaw: None,
            seen: 0,
        }
    }

    /// Takes bytes up to the end of the text; returns how many it took, and whether the text has
    /// ended. Bytes behind the end are ignored.
    pub fn feed(&mut self, bytes: &[u8]) -> (usize, bool) {
        for (at, byte) in bytes.iter().enumerate() {
            if self.step(*byte) {
                self.seen += at + 1;
                return (at + 1, true);
            }
        }
        self.seen += bytes.len();
        (bytes.len(), false)
    }

    /// The bytes that were taken, stored or not.
    pub fn seen(&self) -> usize {
        self.seen
    }

    /// Stops storing bytes, because memory is short elsewhere.
    pub fn give_up(&mut self) {
        self.refuse(Flaw::TooLarge);
    }

    fn step(&mut self, byte: u8) -> bool {
        self.state = match (self.state, byte) {
            (LineState::LineStart, b'.') => LineState::Dot,
            (LineState::Dot, b'\r') => LineState::DotCr,
            (LineState::DotCr, b'\n') => return true,
            (LineState::DotCr, _) => {
                // The dot was stuffing, and the CR is part of the line.
                self.keep(b'\r');
                self.after(b'\r', byte)
            }
            (LineState::Cr, _) => self.after(b'\r', byte),
            (LineState::LineStart | LineState::Dot | LineState::Line, _) => self.after(0, byte),
        };
        false
    }

    /// Stores a byte that follows another; returns the next state.
    fn after(&mut self, before: u8, byte: u8) -> LineState {
        self.keep(byte);
        match (before, byte) {
            (b'\r', b'\n') => LineState::LineStart,
            (b'\r', _) | (_, b'\n') => {
                self.refuse(Flaw::BareLineEnd);
                if byte == b'\r' {
                    LineState::Cr
                } else {
                    LineState::Line
                }
            }
            (_, b'\r') => LineState::Cr,
            _ => LineState::Line,
        }
    }

    fn keep(&mut self, byte: u8) {
        if self.bytes.len() >= self.most {
            self.refuse(Flaw::TooLarge);
        }
        if self.flaw.is_none() {
            self.bytes.push(byte);
        }
    }

    fn refuse(&mut self, flaw: Flaw) {
        if self.flaw.is_none() {
            self.flaw = Some(flaw);
            self.bytes = Vec::new();
        }
    }

    /// Returns the text.
    ///
    /// # Errors
    /// Why the text is rejected.
    pub fn finish(self) -> Result<Vec<u8>, Flaw> {
        self.flaw.map_or(Ok(self.bytes), Err)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(wire: &[u8]) -> (Result<Vec<u8>, Flaw>, usize, bool) {
        let mut text = Text::new(1 << 20);
        let (taken, is_end) = text.feed(wire);
        (text.finish(), taken, is_end)
    }

    #[test]
    fn dots_are_taken_out() {
        let check = |wire: &str, expected: &str| {
            let (text, taken, is_end) = read(wire.as_bytes());
            assert_eq!(
                String::from_utf8(text.unwrap()).unwrap(),
                expected,
                "{wire:?}"
            );
            assert!(is_end && taken == wire.len(), "{wire:?}");
        };
        check(".\r\n", "");
        check("a\r\n.\r\n", "a\r\n");
        check("..\r\n...a\r\n.\r\n", ".\r\n..a\r\n");
        check(".a\r\n.\r\n", "a\r\n");
        check("a.\r\n.\r\n", "a.\r\n");
        assert!(!read(b"a\r\n.").2);
    }

    #[test]
    fn what_others_might_take_for_the_end_is_neither_an_end_nor_let_through() {
        for wire in [
            "a\n.\nMAIL FROM:<b>\r\n.\r\n",
            "a\n.\r\nMAIL FROM:<b>\r\n.\r\n",
            "a\r\n.\nMAIL FROM:<b>\r\n.\r\n",
            "a\r.\rMAIL FROM:<b>\r\n.\r\n",
            "a\r\n.\rMAIL FROM:<b>\r\n.\r\n",
            "a\r.\r\nMAIL FROM:<b>\r\n.\r\n",
            "a\r\r\n.\r\n",
            "a\n\r\n.\r\n",
            ".\r\r\n.\r\n",
        ] {
            let (text, taken, is_end) = read(wire.as_bytes());
            assert!(is_end && taken == wire.len(), "{wire:?}");
            assert_eq!(text, Err(Flaw::BareLineEnd), "{wire:?}");
        }
    }

    #[test]
    fn texts_are_bounded_and_lines_are_not() {
        let mut text = Text::new(10);
        assert_eq!(text.feed(b"12345678\r\n9\r\n.\r\n"), (16, true));
        assert_eq!(text.finish(), Err(Flaw::TooLarge));
        let line = "x".repeat(100_000) + "\r\n";
        let (text, ..) = read(format!("{line}.\r\n").as_bytes());
        assert_eq!(text, Ok(line.into_bytes()));
    }

    proptest! {
        #[test]
        fn whatever_is_sent_comes_back_however_it_is_cut(
            lines in prop::collection::vec("[.a-c]{0,4}", 0..8), cut in 0..40_usize
        ) {
            let body: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
            let wire: String = lines
                .iter()
                .map(|line| format!("{}{line}\r\n", if line.starts_with('.') { "." } else { "" }))
                .collect::<String>() + ".\r\nQUIT\r\n";
            let (start, rest) = wire.as_bytes().split_at(cut.min(wire.len()));
            let mut text = Text::new(1 << 20);
            let (mut taken, mut is_end) = text.feed(start);
            if !is_end {
                let (more, end) = text.feed(rest);
                (taken, is_end) = (taken + more, end);
            }
            prop_assert!(is_end);
            prop_assert_eq!(&wire[taken..], "QUIT\r\n");
            prop_assert_eq!(text.finish(), Ok(body.into_bytes()));
        }

        #[test]
        fn nothing_with_a_bare_line_end_gets_through(wire in "[a.\r\n]{0,16}") {
            let wire = wire + "\r\n.\r\n";
            let mut text = Text::new(1 << 20);
            if let (_, true) = text.feed(wire.as_bytes())
                && let Ok(bytes) = text.finish()
            {
                let bare = String::from_utf8(bytes).unwrap().replace("\r\n", "");
                prop_assert!(!bare.contains(['\r', '\n']));
            }
        }
    }
}
