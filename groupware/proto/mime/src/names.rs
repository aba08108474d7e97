//! File names of messages, made safe.

use groupware_text::is_deceptive;

use crate::limits;

/// Returns a name that is a valid file name on any system. A long one keeps its extension.
pub(crate) fn safe_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let clean: String = last
        .chars()
        .filter(|letter| !is_deceptive(*letter))
        .map(|letter| if letter.is_control() { '_' } else { letter })
        .collect();
    shortened(
        clean.trim().trim_start_matches('.'),
        limits::FILE_NAME_BYTES,
    )
}

fn shortened(name: &str, most: usize) -> String {
    const EXTENSION_BYTES: usize = 20;
    if name.len() <= most {
        return name.to_owned();
    }
    let extension = name.rfind('.').map_or("", |at| &name[at..]);
    let extension = if extension.len() <= EXTENSION_BYTES {
        extension
    } else {
        ""
    };
    let begin = &name[..name.floor_char_boundary(most - extension.len())];
    format!("{begin}{extension}")
}
