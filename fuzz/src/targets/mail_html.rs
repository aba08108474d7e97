//! Any text as the HTML of a mail: what is left of it runs nothing and loads nothing.

use groupware_front_pages::{clean_html, html_text};

pub(crate) fn run(data: &[u8]) {
    let Ok(html) = std::str::from_utf8(data) else {
        return;
    };
    let clean = clean_html(html);
    // Each link has its address behind it, and each character reference is shorter than what it stands for.
    assert!(html_text(html).len() <= 4 * html.len() + 16, "{html:?}");
    // Of the markup that is left, quotes within values and text are escaped: whatever stands
    // between `<` and `>` is a tag of the cleaner's own writing.
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
        let pictures = tag.replace(" src=\"data:image/", "");
        assert!(!pictures.contains(" src=\""), "{html:?} {clean:?}");
        assert!(!tag.contains("href=\"javascript"), "{html:?} {clean:?}");
    }
}
