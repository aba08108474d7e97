//! Places in a text, and insertions into it. Lines stay: no edit adds or removes a line end.

/// Text that is put at a place, and replaces what is up to `end`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edit {
    pub(crate) at: u32,
    pub(crate) end: u32,
    pub(crate) text: String,
    /// The order at one place: what closes the shorter construct first, then what opens the longer one first.
    rank: (u8, u32),
}

impl Edit {
    /// Opens a construct that ends at `end`.
    pub(crate) fn open(at: u32, until: u32, text: impl Into<String>) -> Edit {
        Edit {
            at,
            end: at,
            text: text.into(),
            rank: (1, u32::MAX - until),
        }
    }

    /// Closes a construct that began at `from`.
    pub(crate) fn close(at: u32, from: u32, text: impl Into<String>) -> Edit {
        Edit {
            at,
            end: at,
            text: text.into(),
            rank: (0, u32::MAX - from),
        }
    }

    /// Replaces a text.
    pub(crate) fn replace(at: u32, end: u32, text: impl Into<String>) -> Edit {
        Edit {
            at,
            end,
            text: text.into(),
            rank: (2, 0),
        }
    }
}

/// Applies edits. Line ends in replaced text are kept.
pub(crate) fn applied(text: &str, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|edit| (edit.at, edit.rank));
    let added: usize = edits.iter().map(|edit| edit.text.len()).sum();
    let mut out = String::with_capacity(text.len() + added);
    let mut at = 0;
    for edit in edits {
        let (start, end) = (edit.at as usize, edit.end as usize);
        // Inside of what was replaced.
        if start < at {
            continue;
        }
        if start > at {
            out.push_str(text.get(at..start).unwrap_or_default());
            at = start;
        }
        out.push_str(&edit.text);
        if end > at {
            let gone = text.get(at..end).unwrap_or_default();
            out.extend(
                gone.chars()
                    .filter(|c| matches!(c, '\n' | '\r' | '\u{2028}' | '\u{2029}')),
            );
            at = end;
        }
    }
    out.push_str(text.get(at..).unwrap_or_default());
    out
}

/// The lines of a text.
#[derive(Debug, Clone)]
pub(crate) struct Lines<'t> {
    text: &'t str,
    starts: Vec<u32>,
}

impl<'t> Lines<'t> {
    pub(crate) fn new(text: &'t str) -> Lines<'t> {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(ends.map(|(at, _)| at as u32 + 1));
        Lines {
            text,
            starts: starts.collect(),
        }
    }

    /// The line and the column of an offset, in characters from 1.
    pub(crate) fn place(&self, at: u32) -> (u32, u32) {
        let line = self.starts.partition_point(|start| *start <= at).max(1);
        let before = self.text.get(self.starts[line - 1] as usize..at as usize);
        let column = before.map_or(0, |before| before.chars().count());
        (line as u32, column as u32 + 1)
    }
}

/// The offset of a problem that the parser found.
pub(crate) fn place_of(diagnostic: &oxc_diagnostics::OxcDiagnostic) -> u32 {
    let label = diagnostic.labels.as_ref().and_then(|labels| labels.first());
    label.map_or(0, |label| label.offset() as u32)
}
