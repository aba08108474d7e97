//! A summary for a job of GitHub Actions: the result, in Markdown, and the whole report folded under it.
//!
//! GitHub shows nothing of a summary over 1 MiB (GitHub, "Workflow commands for GitHub Actions", *Adding a job
//! summary*), so a longer report is truncated at the end of a line.

use crate::document::{Document, Tone};
use crate::render;

/// The maximum size of a summary in bytes; a job may add texts of its own.
const MOST: usize = 1_000_000;

const OPEN: &str = "<details><summary>The whole report</summary>\n\n";
const CLOSE: &str = "\n</details>\n";
const CUT: &str = "\nThe rest is longer than GitHub shows: see report.html.\n";

/// The document as a summary.
pub(super) fn github(document: &Document) -> String {
    let (gist, rest) = render::markdown_in_two(document);
    let mark = match document.verdict.tone {
        Tone::Good => "✅ ",
        Tone::Warn => "⚠️ ",
        Tone::Bad => "❌ ",
        Tone::Plain => "",
    };
    // A heading among those of other steps.
    let gist = gist.replacen("# ", &format!("### {mark}"), 1);
    let (gist, _) = cut(&gist, MOST / 2);
    let room = MOST - gist.len() - OPEN.len() - CLOSE.len() - CUT.len();
    match cut(&rest, room) {
        ("", false) => format!("{gist}\n"),
        (rest, false) => format!("{gist}\n\n{OPEN}{rest}{CLOSE}"),
        (rest, true) => format!("{gist}\n\n{OPEN}{rest}{CUT}{CLOSE}"),
    }
}

/// The whole lines that fit, and whether any are missing.
fn cut(text: &str, room: usize) -> (&str, bool) {
    if text.len() <= room {
        return (text, false);
    }
    let most = text.floor_char_boundary(room);
    let end = text[..most].rfind('\n').map_or(0, |at| at + 1);
    (&text[..end], true)
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn long_reports_are_cut_at_a_line() {
        assert_eq!(cut("one\ntwo\n", 8), ("one\ntwo\n", false));
        assert_eq!(cut("one\ntwo\n", 7), ("one\n", true));
        assert_eq!(cut("ééé", 3), ("", true));
    }
}
