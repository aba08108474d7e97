//! Any text as the HTML of a mail: the cleaned HTML runs nothing and loads nothing.

use groupware_front_pages::{clean_html, html_text};

pub(crate) fn run(data: &[u8]) {
    let Ok(html) = std::str::from_utf8(data) else {
        return;
    };
    let clean = clean_html(html);
    // Each link has its address behind it, and each character reference is shorter than its text.
    assert!(html_text(html).len() <= 4 * html.len() + 16, "{html:?}");
    // In the cleaned markup, quotes within values and text are escaped: everything between `<` and `>` is a tag written
    // by the cleaner.
    for tag in clean
        .split('<')
        .skip(1)
        .filter_map(|rest| rest.split('>').next())
    {
        let name = tag
            .trim_start_matches('/')
            .split(' ')
            .next()
            .unwrap_or_default();
        for bad in [
            "script", "style", "iframe", "form", "input", "svg", "math", "meta", "base",
        ] {
            assert_ne!(name, bad, "{html:?} {clean:?}");
        }
        for (name, value) in attributes(tag) {
            let is_picture = value.starts_with("data:image/");
            assert!(name != "src" || is_picture, "{html:?} {clean:?}");
            let runs = name == "href" && value.starts_with("javascript");
            assert!(!runs, "{html:?} {clean:?}");
        }
    }
}

/// The attributes of a tag that the cleaner wrote: ` name="value"` each, in which a quote ends the value.
fn attributes(tag: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = tag;
    std::iter::from_fn(move || {
        let (before, behind) = rest.split_once("=\"")?;
        let (value, behind) = behind.split_once('"')?;
        rest = behind;
        let name = before.rsplit(' ').next().unwrap_or_default();
        Some((name, value))
    })
}
