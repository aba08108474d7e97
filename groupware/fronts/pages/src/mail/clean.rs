//! Makes the HTML of a mail harmless: whoever wrote it must not run anything, learn anything, or
//! pass for this server.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use ammonia::{Builder, UrlRelative};
use maud::{Markup, PreEscaped};

/// What text needs; no forms, frames, media, or styles.
const TAGS: [&str; 49] = [
    "a",
    "abbr",
    "address",
    "b",
    "bdi",
    "bdo",
    "big",
    "blockquote",
    "br",
    "caption",
    "center",
    "cite",
    "code",
    "col",
    "colgroup",
    "dd",
    "del",
    "dfn",
    "div",
    "dl",
    "dt",
    "em",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "i",
    "img",
    "ins",
    "kbd",
    "li",
    "mark",
    "ol",
    "p",
    "pre",
    "q",
    "s",
    "samp",
    "small",
    "span",
    "strike",
    "strong",
    "sub",
    "sup",
    "table",
    "tbody",
    "td",
    "th",
];
const MORE_TAGS: [&str; 9] = ["font", "h1", "h2", "tfoot", "thead", "tr", "tt", "u", "ul"];
/// What a link may lead to.
const LINKS: [&str; 3] = ["http://", "https://", "mailto:"];

/// A mail's HTML without what could do harm.
pub(crate) struct Cleaned {
    pub(crate) markup: Markup,
    /// Images from elsewhere that were left out: loading them would tell their sender that, when,
    /// and where the mail is read.
    pub(crate) left_out: usize,
}

/// Cleans a mail's HTML, whose [shape](super::shape) is modest. `images` are those that came with the mail: their `Content-ID`s without
/// brackets, and their paths here.
pub(crate) fn clean(html: &str, images: Vec<(String, String)>) -> Cleaned {
    let left_out = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&left_out);
    let cell = ["align", "colspan", "rowspan", "valign"];
    let attributes: HashMap<_, HashSet<_>> = [
        ("a", HashSet::from(["href"])),
        ("img", HashSet::from(["src", "alt", "width", "height"])),
        ("ol", HashSet::from(["start"])),
        ("td", HashSet::from(cell)),
        ("th", HashSet::from(cell)),
    ]
    .into();
    let opens_elsewhere = [("a", [("target", "_blank")].into())].into();
    let cleaned = Builder::empty()
        .tags(TAGS.into_iter().chain(MORE_TAGS).collect())
        .clean_content_tags(HashSet::from(["script", "style", "title", "template"]))
        .tag_attributes(attributes)
        .generic_attributes(HashSet::from(["dir", "lang", "title"]))
        .set_tag_attribute_values(opens_elsewhere)
        .url_schemes(HashSet::from(["http", "https", "mailto", "cid"]))
        // Only what the filter has written is relative when this is asked.
        .url_relative(UrlRelative::PassThrough)
        .link_rel(Some("noopener noreferrer nofollow"))
        .attribute_filter(
            move |element, attribute, value| match (element, attribute) {
                ("img", "src") => {
                    let path = strip_scheme(value, "cid:").and_then(|id| path_of(&images, id));
                    if path.is_none() {
                        counted.fetch_add(1, Relaxed);
                    }
                    path.map(Into::into)
                }
                ("a", "href") => {
                    let is_link = LINKS.iter().any(|link| strip_scheme(value, link).is_some());
                    is_link.then(|| value.into())
                }
                _ => Some(value.into()),
            },
        )
        .clean(html)
        .to_string();
    Cleaned {
        markup: PreEscaped(cleaned),
        left_out: left_out.load(Relaxed),
    }
}

/// Cleans a mail's HTML of which no image came along; none is left of what costs too much.
pub fn clean_html(html: &str) -> String {
    match super::shape::is_modest(html) {
        true => clean(html, Vec::new()).markup.into_string(),
        false => String::new(),
    }
}

/// The path of an image by its `Content-ID` as a link has it.
fn path_of(images: &[(String, String)], id: &str) -> Option<String> {
    let id = id.replace("%40", "@");
    let found = images.iter().find(|(known, _)| *known == id);
    found.map(|(_, path)| path.clone())
}

fn strip_scheme<'v>(value: &'v str, scheme: &str) -> Option<&'v str> {
    let (start, rest) = value.trim().split_at_checked(scheme.len())?;
    (start.eq_ignore_ascii_case(scheme) && !rest.is_empty()).then_some(rest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cleaned(html: &str) -> Cleaned {
        let logo = ("logo".to_owned(), "/message/X/file/logo.png".to_owned());
        clean(html, vec![logo])
    }

    #[test]
    fn text_stays_text() {
        let check = |html: &str, expected: &str| {
            assert_eq!(cleaned(html).markup.into_string(), expected, "{html}");
        };
        check("<p>One &amp; <b>two</b>", "<p>One &amp; <b>two</b></p>");
        check(
            "<a href='https://example.org/?a=1&b=2'>x</a>",
            "<a href=\"https://example.org/?a=1&amp;b=2\" target=\"_blank\" \
             rel=\"noopener noreferrer nofollow\">x</a>",
        );
        check(
            "<img src='CID:logo' alt=Logo>",
            "<img src=\"/message/X/file/logo.png\" alt=\"Logo\">",
        );
        check("<td colspan=2>a</td>", "a");
        check(
            "<table><tr><td colspan=2 onclick=x style='position:fixed'>a",
            "<table><tbody><tr><td colspan=\"2\">a</td></tr></tbody></table>",
        );
    }

    #[test]
    fn nothing_runs_and_nothing_is_loaded() {
        for html in [
            "<script>alert(1)</script>",
            "<img src=x onerror=alert(1)>",
            "<svg onload=alert(1)><script>alert(1)</script></svg>",
            "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>",
            "<noscript><p title=\"</noscript><img src=x onerror=alert(1)>\">",
            "<a href='javascript:alert(1)'>x</a>",
            "<a href='java\nscript:alert(1)'>x</a>",
            "<a href=' &#1; javascript:alert(1)'>x</a>",
            "<a href='data:text/html,<script>alert(1)</script>'>x</a>",
            "<a href='/sign-out'>x</a><a href='//evil.example'>x</a><a href='?x'>x</a>",
            "<form action=/write><input name=a><button formaction=x>x</button></form>",
            "<iframe src=https://evil.example></iframe><object data=x></object><embed src=x>",
            "<link rel=stylesheet href=https://evil.example><style>body{display:none}</style>",
            "<meta http-equiv=refresh content='0;url=https://evil.example'>",
            "<base href=https://evil.example>",
            "<div style='background:url(https://evil.example/x)' class=skip id=main>x</div>",
            "<body background=https://evil.example/x><table background=x><tr><td background=x>",
            "<img srcset='https://evil.example/x 1x'><picture><source srcset=x></picture>",
            "<video poster=x><audio src=x><source src=x></video>",
            "<img src='https://evil.example/x.png'><img src='//evil.example/x'><img src=cid:x>",
            "<img src='/sign-out'><img src='data:image/svg+xml,<svg onload=alert(1)>'>",
            "<!--><script>alert(1)</script>--><![CDATA[<script>alert(1)</script>]]>",
            "<title>x</title><template><script>alert(1)</script></template>",
        ] {
            let text = cleaned(html).markup.into_string();
            for bad in [
                "<script",
                "onerror",
                "onload",
                "javascript",
                "evil",
                "src=",
                "href=",
                "style",
                "class=",
                "id=",
                "<form",
                "<input",
                "<button",
                "<svg",
                "<math",
                "<!--",
                "background",
            ] {
                assert!(!text.contains(bad), "{html}\n{text}");
            }
        }
    }

    #[test]
    fn images_from_elsewhere_are_counted() {
        let html = "<img src=cid:logo><img src=cid:other><img src=https://a/b><img alt=x>";
        assert_eq!(cleaned(html).left_out, 2);
    }

    #[test]
    fn deep_html_needs_no_deep_stack() {
        let html = "<div>".repeat(900) + &"<p><b id=1>".repeat(50);
        assert!(super::super::shape::is_modest(&html));
        let thread = std::thread::Builder::new().stack_size(256 << 10);
        let cleaning = thread.spawn(move || cleaned(&html).markup.into_string().len());
        assert!(cleaning.unwrap().join().unwrap() > 900);
    }

    proptest! {
        #[test]
        fn what_is_clean_stays_as_it_is(html in "(<(a|img|p|td|svg|style|b)( (href|src|style|onclick)=[\"']?[a-z:/#;&\"' ]{0,12})?>|</(p|a|svg|style)>|[a-z&;<>\"' ]{0,6}){0,12}") {
            let once = cleaned(&html).markup.into_string();
            prop_assert!(!once.contains(" on") || !once.contains("onclick="), "{}", once);
            prop_assert!(!once.contains("style="), "{}", once);
            prop_assert!(!once.contains("<svg") && !once.contains("<style"), "{}", once);
        }
    }
}
