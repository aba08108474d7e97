//! Turns web addresses in others' texts into links.

use groupware_text::is_bidi_override;
use maud::{Markup, html};

use crate::mail::text::{foreign, ordered};

/// Links texts that begin like a web address.
pub(crate) fn links(text: &str) -> Markup {
    let mut rest = text;
    let mut pieces: Vec<(&str, bool)> = Vec::new();
    while let Some(at) = next_link(rest) {
        let (before, link) = rest.split_at(at);
        let ends = |c: char| c.is_whitespace() || is_bidi_override(c) || "<>\"".contains(c);
        let end = link.find(ends);
        let link = &link[..end.unwrap_or(link.len())];
        let link = link.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '\'']);
        pieces.push((before, false));
        // A scheme without an address is no link.
        pieces.push((
            link,
            link.split_once("://")
                .is_some_and(|(_, rest)| !rest.is_empty()),
        ));
        rest = &rest[at + link.len()..];
    }
    pieces.push((rest, false));
    html! {
        @for (piece, is_link) in pieces {
            @if is_link {
                a href=(piece) target="_blank" rel="noopener noreferrer nofollow" { (foreign(piece)) }
            } @else { (ordered(piece)) }
        }
    }
}

/// Returns the offset of the next scheme. The text is scanned once, however many schemes it has.
fn next_link(text: &str) -> Option<usize> {
    let mut schemes = text.match_indices("http");
    let is_scheme = |at: &usize| {
        let rest = &text[at + "http".len()..];
        rest.starts_with("://") || rest.starts_with("s://")
    };
    schemes.find_map(|(at, _)| Some(at).filter(is_scheme))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_web_addresses_become_links() {
        let check = |text: &str, expected: &str| {
            let found = links(text).into_string();
            let short = found
                .replace(
                    " target=\"_blank\" rel=\"noopener noreferrer nofollow\"",
                    "",
                )
                .replace("<bdi>", "")
                .replace("</bdi>", "");
            assert_eq!(short, expected);
        };
        check(
            "http https:/ htthttp://a",
            "http https:/ htt<a href=\"http://a\">http://a</a>",
        );
        check("a <b> & c", "a &lt;b&gt; &amp; c");
        check(
            "See https://x.y/?a=1&b=\"2\", or http://z.",
            "See <a href=\"https://x.y/?a=1&amp;b=\">https://x.y/?a=1&amp;b=</a>&quot;2&quot;, or \
             <a href=\"http://z\">http://z</a>.",
        );
        check(
            "Pay at https://bad.example/\u{202e}.moc.knab//:sptth now",
            "Pay at <a href=\"https://bad.example/\">https://bad.example/</a>.moc.knab//:sptth now",
        );
        check(
            "javascript:alert(1) https://",
            "javascript:alert(1) https://",
        );
    }
}
