//! Sanitises the HTML of a mail: its author must not run scripts, track readers, or imitate this
//! server.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use ammonia::{Builder, UrlRelative};
use maud::{Markup, PreEscaped};
use percent_encoding::percent_decode_str;

use super::{data, shape, text};

/// Tags for text; no forms, frames, media, or styles.
const TAGS: [&str; 48] = [
    "a",
    "abbr",
    "address",
    "b",
    "bdi",
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
/// The permitted prefixes of links.
const LINKS: [&str; 3] = ["http://", "https://", "mailto:"];

/// A picture in a mail, and the names by which its HTML may refer to it.
#[derive(Debug, Default)]
pub(crate) struct Picture {
    /// The `Content-ID` without brackets.
    pub(crate) id: Option<String>,
    /// The `Content-Location`.
    pub(crate) location: Option<String>,
    /// Its file name.
    pub(crate) name: String,
    /// Its path on this server.
    pub(crate) path: String,
}

/// A mail's sanitised HTML.
pub(crate) struct Cleaned {
    pub(crate) markup: Markup,
    /// The number of removed remote images: loading them would reveal to their sender that, when,
    /// and where the mail is read.
    pub(crate) left_out: usize,
    /// The paths of the shown pictures.
    pub(crate) shown: HashSet<String>,
    /// Whether the HTML contains embedded pictures.
    pub(crate) has_data: bool,
}

/// Sanitises a mail's HTML. `None` if parsing would cost too much.
pub(crate) fn clean(html: &str, pictures: Arc<Pictures>) -> Option<Cleaned> {
    let (html, data) = data::take(html);
    let html = shape::modest(&html)?;
    let has_data = !data.is_empty();
    let left_out = Arc::new(AtomicUsize::new(0));
    let shown = Arc::new(Mutex::new(HashSet::new()));
    let (counted, noted) = (Arc::clone(&left_out), Arc::clone(&shown));
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
        .url_schemes(HashSet::from([
            "http",
            "https",
            "mailto",
            "cid",
            data::SCHEME,
        ]))
        // Relative addresses at this point were written by the filter.
        .url_relative(UrlRelative::PassThrough)
        .link_rel(Some("noopener noreferrer nofollow"))
        .attribute_filter(
            move |element, attribute, value| match (element, attribute) {
                ("img", "src") => {
                    if let Some(uri) = data::uri(&data, value) {
                        return Some(uri.to_owned().into());
                    }
                    let path = pictures.path_of(value).map(str::to_owned);
                    match &path {
                        Some(path) => {
                            drop(noted.lock().map(|mut shown| shown.insert(path.clone())))
                        }
                        None => drop(counted.fetch_add(1, Relaxed)),
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
        .clean(&html)
        .to_string();
    let shown = shown.lock().map(|mut shown| std::mem::take(&mut *shown));
    Some(Cleaned {
        markup: PreEscaped(text::ordered(&cleaned).into_owned()),
        left_out: left_out.load(Relaxed),
        shown: shown.unwrap_or_default(),
        has_data,
    })
}

/// Sanitises a mail's HTML without its pictures; empty if parsing would cost too much.
pub fn clean_html(html: &str) -> String {
    let cleaned = clean(html, Arc::default());
    cleaned.map_or_else(String::new, |cleaned| cleaned.markup.into_string())
}

/// The pictures of a mail by each of their names. HTML may have thousands of references, a mail a thousand pictures.
#[derive(Debug, Default)]
pub(crate) struct Pictures {
    paths: Vec<String>,
    /// By `Content-ID` in lower case (RFC 2392).
    ids: HashMap<String, usize>,
    /// By `Content-Location` (RFC 2557).
    locations: HashMap<String, usize>,
    names: HashMap<String, usize>,
}

impl Pictures {
    /// Of several pictures with one name, the first is used.
    pub(crate) fn new(pictures: impl IntoIterator<Item = Picture>) -> Self {
        let mut all = Self::default();
        for picture in pictures {
            let at = all.paths.len();
            if let Some(id) = picture.id {
                all.ids.entry(id.to_ascii_lowercase()).or_insert(at);
            }
            if let Some(location) = picture.location {
                all.locations.entry(location).or_insert(at);
            }
            all.names.entry(picture.name).or_insert(at);
            all.paths.push(picture.path);
        }
        all
    }

    /// Returns the path of the picture that HTML refers to by its id, its location, or its name.
    fn path_of(&self, value: &str) -> Option<&str> {
        let value = value.trim();
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let by_id = |id: &str| self.ids.get(&id.to_ascii_lowercase());
        let found = match strip_scheme(value, "cid:") {
            Some(id) => [by_id(&decoded(id)), by_id(id)].into_iter().flatten().min(),
            None => {
                let name = decoded(value);
                let is_name = !name.is_empty() && !name.contains(':') && !name.starts_with('/');
                let named = is_name.then(|| [by_id(&name), self.names.get(&name)]);
                let located = self.locations.get(value);
                named.into_iter().flatten().flatten().chain(located).min()
            }
        };
        found.map(|at| self.paths[*at].as_str())
    }
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
        let picture = |id: &str, location: Option<&str>, name: &str| Picture {
            id: Some(id.to_owned()),
            location: location.map(str::to_owned),
            name: name.to_owned(),
            path: format!("/message/X/file/{name}"),
        };
        let pictures = vec![
            picture("logo", None, "logo.png"),
            picture(
                "a+b$c@pier.example",
                Some("http://pier.example/p.png"),
                "p.png",
            ),
            picture("image001.png", None, "part-3.png"),
        ];
        clean(html, Arc::new(Pictures::new(pictures))).unwrap()
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
            "<noscript><img src=x onerror=alert(1)></noscript>",
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
    fn what_stands_in_an_attribute_stays_there() {
        let html = "<noscript><p title=\"</noscript><img src=x onerror=alert(1)>\">x";
        let text = cleaned(html).markup.into_string();
        assert!(
            text.starts_with("<p title=\"") && text.ends_with("\">x</p>"),
            "{text}"
        );
        assert_eq!(
            text.matches('<').count(),
            text.matches("<p").count() + 1,
            "{text}"
        );
    }

    #[test]
    fn images_from_elsewhere_are_counted() {
        let html = "<img src=cid:logo><img src=cid:other><img src=https://a/b><img alt=x>";
        assert_eq!(cleaned(html).left_out, 2);
    }

    #[test]
    fn of_pictures_with_one_name_the_first_is_shown() {
        let picture = |id: &str, location: &str, name: &str, path: &str| Picture {
            id: Some(id.to_owned()),
            location: Some(location.to_owned()),
            name: name.to_owned(),
            path: path.to_owned(),
        };
        let pictures = Pictures::new([
            picture("Pier", "http://pier.example/1", "a.png", "/1"),
            picture("pier", "http://pier.example/2", "pier", "/2"),
            picture("quay", "http://pier.example/1", "a.png", "/3"),
        ]);
        for (value, path) in [
            ("cid:PIER", Some("/1")),
            ("pier", Some("/1")),
            ("cid:quay", Some("/3")),
            ("a.png", Some("/1")),
            ("http://pier.example/1", Some("/1")),
            ("http://pier.example/2", Some("/2")),
            ("http://pier.example/3", None),
            ("cid:a.png", None),
        ] {
            assert_eq!(pictures.path_of(value), path, "{value}");
        }
    }

    #[test]
    fn pictures_of_the_mail_are_found_by_all_their_names() {
        for (src, name) in [
            ("cid:logo", "logo.png"),
            ("CID:LOGO", "logo.png"),
            ("cid:a+b$c@pier.example", "p.png"),
            ("cid:a%2Bb%24c%40pier.example", "p.png"),
            ("http://pier.example/p.png", "p.png"),
            ("image001.png", "part-3.png"),
            ("p.png", "p.png"),
            (" logo.png ", "logo.png"),
        ] {
            let found = cleaned(&format!("<img src=\"{src}\">"));
            assert_eq!(
                found.markup.into_string(),
                format!("<img src=\"/message/X/file/{name}\">"),
                "{src}"
            );
            assert_eq!(found.left_out, 0);
            assert!(found.shown.contains(&format!("/message/X/file/{name}")));
        }
        for src in [
            "cid:",
            "cid:p.png",
            "https://pier.example/p.png",
            "/logo.png",
            "//logo.png",
            "x.png",
            "data:0",
        ] {
            let found = cleaned(&format!("<img src=\"{src}\">"));
            assert_eq!(
                (found.markup.into_string(), found.left_out),
                ("<img>".to_owned(), 1),
                "{src}"
            );
        }
    }

    #[test]
    fn pictures_within_the_html_are_shown_if_they_are_pictures() {
        const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
        for begin in [
            "data:image/png;base64,",
            "DATA:image/x-png;charset=x;BASE64,",
            "data:;base64,",
        ] {
            let found = cleaned(&format!("<p>pier<img alt=dot src=\"{begin}{PNG}\">"));
            let expected =
                format!("<p>pier<img alt=\"dot\" src=\"data:image/png;base64,{PNG}\"></p>");
            assert_eq!(found.markup.into_string(), expected);
            assert!(found.has_data);
        }
        // More of it than any other attribute may have.
        let large = format!("{PNG}{}", "A".repeat(600 << 10));
        let found = cleaned(&format!(
            "<b>pier</b><img src=data:image/png;base64,{large}>"
        ));
        assert!(found.markup.into_string().ends_with(&format!("{large}\">")));
        for bad in [
            "data:image/png,x",
            "data:image/png;base64,PHN2Zz4=",
            "data:image/svg+xml;base64,PHN2Zz4=",
            "data:text/html;base64,PHNjcmlwdD4=",
        ] {
            let found = cleaned(&format!("<img src=\"{bad}\"><a href=\"{bad}\">x</a>"));
            let text = found.markup.into_string();
            assert!(!text.contains("data") && found.left_out == 1, "{text}");
        }
    }

    #[test]
    fn letters_are_in_the_order_that_they_are_shown_in() {
        let found = cleaned(
            "<a href=https://evil.example>\u{202e}moc.knab</a> &#x202e;x <bdo dir=rtl>abc</bdo>",
        );
        let text = found.markup.into_string();
        assert!(
            !text.contains('\u{202e}') && !text.contains("bdo"),
            "{text}"
        );
    }

    #[test]
    fn deep_html_needs_no_deep_stack() {
        let html = "<div>".repeat(900) + &"<p><b id=1>".repeat(50);
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
