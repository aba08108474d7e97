//! Paths of a script's files: relative to the folder of its entry, with `/`.

/// The path of `name` as seen from the file `base`, without `.` and with `..` at the beginning only.
#[must_use]
pub fn joined(base: &str, name: &str) -> String {
    let name = name.strip_prefix("file://").unwrap_or(name);
    let mut parts: Vec<&str> = Vec::new();
    if !name.starts_with('/') {
        parts.extend(base.split('/'));
        parts.pop();
    }
    let absolute = name.starts_with('/') || base.starts_with('/') && !parts.is_empty();
    let mut out: Vec<&str> = Vec::new();
    for part in parts.into_iter().chain(name.split('/')) {
        match part {
            "" | "." => {}
            ".." if out.last().is_some_and(|last| *last != "..") => {
                out.pop();
            }
            part => out.push(part),
        }
    }
    let joined = out.join("/");
    if absolute {
        format!("/{joined}")
    } else {
        joined
    }
}
