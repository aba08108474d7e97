//! Joins lines that end with a space into paragraphs (RFC 3676, `format=flowed`).

/// Returns the text with each paragraph in a line of its own, behind its quote marks (`>`). With
/// `delsp`, the space at the end of a line is no part of the text.
pub(crate) fn unflow(text: &str, delsp: bool) -> String {
    let mut paragraphs = String::with_capacity(text.len());
    // The quote depth of the paragraph that continues in the next line.
    let mut open: Option<usize> = None;
    for line in text.split_inclusive('\n') {
        let line = line.strip_suffix('\n').unwrap_or(line);
        let line = line.strip_suffix('\r').unwrap_or(line);
        let bare = line.trim_start_matches('>');
        let depth = line.len() - bare.len();
        let bare = bare.strip_prefix(' ').unwrap_or(bare);
        let is_signature = bare == "-- ";
        if open.is_some_and(|known| known != depth || is_signature) {
            paragraphs.push_str("\r\n");
            open = None;
        }
        if open.is_none() {
            paragraphs.extend(std::iter::repeat_n('>', depth));
            if depth > 0 && !bare.is_empty() {
                paragraphs.push(' ');
            }
        }
        let is_flowed = bare.ends_with(' ') && !is_signature;
        let kept = bare.strip_suffix(' ').filter(|_| is_flowed && delsp);
        paragraphs.push_str(kept.unwrap_or(bare));
        open = is_flowed.then_some(depth);
        if !is_flowed {
            paragraphs.push_str("\r\n");
        }
    }
    paragraphs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_end_with_a_space_go_on() {
        for (text, delsp, expected) in [
            (
                "The pier is \r\nclosed \r\nuntil noon.\r\nBye\r\n",
                false,
                "The pier is closed until noon.\r\nBye\r\n",
            ),
            ("港の \r\n返事\r\n", true, "港の返事\r\n"),
            (
                "> quoted \r\n> on\r\n>> deeper \r\n> back\r\n",
                false,
                "> quoted on\r\n>> deeper \r\n> back\r\n",
            ),
            (
                " From here\r\n  indented\r\n >no quote\r\n",
                false,
                "From here\r\n indented\r\n>no quote\r\n",
            ),
            ("text \r\n-- \r\nAda\r\n", false, "text \r\n-- \r\nAda\r\n"),
            ("\r\n\r\nx", false, "\r\n\r\nx\r\n"),
            (">\r\n> x\r\n", false, ">\r\n> x\r\n"),
            ("end ", false, "end "),
            ("", false, ""),
        ] {
            assert_eq!(unflow(text, delsp), expected, "{text:?}");
        }
    }
}
