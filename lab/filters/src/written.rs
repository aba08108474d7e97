//! The forms of a value in requests, which must be found and masked if the value is secret.

use crate::encoding::Encoding;
use crate::escape::{Escape, push_url};

/// Returns the forms in which a request may contain a value.
#[must_use]
pub fn written(value: &str) -> Vec<String> {
    let escapes = [Escape::None, Escape::JsonText, Escape::Form, Escape::Xml];
    let mut forms: Vec<String> = escapes
        .iter()
        .map(|escape| {
            let mut form = value.to_owned();
            escape.apply(&mut form, 0);
            form
        })
        .collect();
    let mut in_path = String::new();
    push_url(value, &mut in_path);
    forms.push(in_path);
    forms.sort();
    forms.dedup();
    // Encoded alone or within a JSON or form text, and then within a path.
    let mut encoded = Vec::new();
    for form in &forms {
        let hex = Encoding::Hex.encode(form.as_bytes());
        encoded.push(hex.to_uppercase());
        encoded.push(hex);
        encoded.extend((0..3).flat_map(|before| within_base64(before, form.as_bytes())));
    }
    for form in &encoded {
        let mut in_path = String::new();
        push_url(form, &mut in_path);
        forms.push(in_path);
    }
    forms.extend(encoded);
    forms
}

/// The shortest prefix of a secret that is masked at the end of a text.
const LEAST_OF_CUT: usize = 4;

/// Replaces each of these forms by a mark, and also a prefix of a form at a cut of the text: at its end, and before
/// `…`.
#[must_use]
pub fn mask_forms(text: &str, mut forms: Vec<String>, mark: &str) -> String {
    forms.retain(|form| !form.is_empty());
    // One secret may be a prefix of another.
    forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
    let mut out = text.to_owned();
    for form in &forms {
        if out.contains(form.as_str()) {
            out = out.replace(form, mark);
        }
    }
    let parts: Vec<String> = out
        .split(CUT)
        .map(|part| without_end(part, &forms, mark))
        .collect();
    parts.join(CUT)
}

/// The mark at the end of a shortened text.
const CUT: &str = "…";

/// Replaces a prefix of a form at the end of the text by a mark.
fn without_end(text: &str, forms: &[String], mark: &str) -> String {
    // A cut character is decoded as this one.
    let end = text.trim_end_matches(char::REPLACEMENT_CHARACTER);
    let cut = forms.iter().map(|form| common(end, form)).max();
    match cut.filter(|cut| *cut >= LEAST_OF_CUT) {
        Some(cut) => format!("{}{mark}", &end[..end.len() - cut]),
        None => text.to_owned(),
    }
}

/// The length in bytes of the longest prefix of `form` at the end of `text`.
fn common(text: &str, form: &str) -> usize {
    let ends = form.char_indices().map(|(at, _)| at).rev();
    let mut ends = ends.filter(|end| text.ends_with(&form[..*end]));
    ends.next().unwrap_or(0)
}

/// The base64 characters, in both alphabets, that depend on `value` alone if `before` bytes precede it; none for a short
/// value, whose characters occur in other texts as well.
fn within_base64(before: usize, value: &[u8]) -> impl Iterator<Item = String> {
    const LEAST: usize = 6;
    let bytes = [&[0; 3][..before], value].concat();
    let own = (before * 8).div_ceil(6)..bytes.len() * 8 / 6;
    [Encoding::Base64, Encoding::Base64Url]
        .into_iter()
        .filter_map(move |encoding| {
            let form = encoding.encode(&bytes);
            let form = form.get(own.clone()).filter(|form| form.len() >= LEAST);
            form.map(str::to_owned)
        })
}
