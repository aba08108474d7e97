//! The headers of tus 1.0: text in, validated values out. See <https://tus.io/protocols/resumable-upload>.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::FieldError;

/// Longest `Upload-Metadata`.
pub const METADATA_BYTES: usize = 4096;
/// Most names in `Upload-Metadata`.
pub const METADATA_NAMES: usize = 32;

/// Longest `Upload-Concat`.
pub const CONCAT_BYTES: usize = 16 << 10;

/// The supported version.
pub const VERSION: &str = "1.0.0";
/// The supported extensions.
pub const EXTENSIONS: &str = "creation,creation-defer-length,creation-with-upload,termination,\
    checksum,expiration,concatenation";
/// The supported checksums.
pub const ALGORITHMS: &str = "sha1,sha256,blake3";
/// The media type of a chunk.
pub const CHUNK_TYPE: &str = "application/offset+octet-stream";

/// Parses `Upload-Length` or `Upload-Offset`: a whole number that is not negative.
///
/// # Errors
/// If it isn't one, or is larger than any file.
pub fn number(name: &str, text: &str) -> Result<u64, FieldError> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(FieldError::Malformed(
            format!("{name} is a whole number that is not negative.").into(),
        ));
    }
    text.parse()
        .map_err(|_| FieldError::TooLarge(format!("{name} is larger than any file.").into()))
}

/// The value of `Upload-Concat`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Concat {
    /// The upload is a part of a file, to be joined with others.
    Partial,
    /// The upload joins these uploads, named by the last segment of their addresses, in this order.
    Final(Vec<String>),
}

/// Parses `Upload-Concat`: `partial`, or `final;` and the addresses of the parts, with or without a
/// host, separated by spaces.
///
/// # Errors
/// If it can't be parsed, names no part, or one twice.
pub fn concat(text: &str) -> Result<Concat, FieldError> {
    let bad = || FieldError::Malformed("Upload-Concat is partial, or final; and its parts.".into());
    let text = text.trim();
    if text.len() > CONCAT_BYTES {
        return Err(bad());
    }
    if text == "partial" {
        return Ok(Concat::Partial);
    }
    let parts = text.strip_prefix("final;").ok_or_else(bad)?;
    let mut names: Vec<String> = Vec::new();
    for address in parts.split_ascii_whitespace() {
        let name = address.rsplit('/').next().unwrap_or_default();
        if name.is_empty() || names.iter().any(|known| known == name) {
            return Err(bad());
        }
        names.push(name.to_owned());
    }
    match names.is_empty() {
        true => Err(bad()),
        false => Ok(Concat::Final(names)),
    }
}

/// The value of `Upload-Metadata`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Metadata {
    /// `filename`, or `name`.
    pub file_name: Option<String>,
    /// `filetype`, or `type`.
    pub media_type: Option<String>,
}

/// Parses `Upload-Metadata`: names with values in base64, separated by commas.
///
/// # Errors
/// If it can't be parsed, or exceeds a bound.
pub fn metadata(text: &str) -> Result<Metadata, FieldError> {
    let bad = || FieldError::Malformed("Upload-Metadata can't be read.".into());
    let mut metadata = Metadata::default();
    let mut names: Vec<&str> = Vec::new();
    if text.len() > METADATA_BYTES {
        return Err(bad());
    }
    // Some clients end the list with a comma.
    let text = text.trim();
    let text = text.strip_suffix(',').unwrap_or(text);
    for pair in text.split(',').filter(|_| !text.is_empty()) {
        let pair = pair.trim();
        let (name, value) = pair.split_once(' ').unwrap_or((pair, ""));
        let is_new = !name.is_empty() && !names.contains(&name);
        if !is_new || !name.is_ascii() || names.len() >= METADATA_NAMES {
            return Err(bad());
        }
        names.push(name);
        let value = STANDARD.decode(value.trim()).map_err(|_| bad())?;
        let slot = match name {
            "filename" | "name" => &mut metadata.file_name,
            "filetype" | "type" => &mut metadata.media_type,
            _ => continue,
        };
        // The more common name takes precedence.
        if slot.is_none() || name.starts_with("file") {
            *slot = Some(String::from_utf8(value).map_err(|_| bad())?);
        }
    }
    Ok(metadata)
}

/// A checksum algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// 160 bits; required of every tus server.
    Sha1,
    /// 256 bits.
    Sha256,
    /// 256 bits, the fastest.
    Blake3,
}

/// The value of `Upload-Checksum` of a chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checksum {
    /// Its algorithm.
    pub algorithm: Algorithm,
    /// Its value.
    pub digest: Vec<u8>,
}

/// Parses `Upload-Checksum`: an algorithm and a checksum in base64. A wrong length matches nothing.
///
/// # Errors
/// If it can't be parsed, or the algorithm isn't supported.
pub fn checksum(text: &str) -> Result<Checksum, FieldError> {
    let (name, digest) = text.trim().split_once(' ').unwrap_or_default();
    let algorithm = match name {
        "sha1" => Algorithm::Sha1,
        "sha256" => Algorithm::Sha256,
        "blake3" => Algorithm::Blake3,
        _ => {
            return Err(FieldError::Malformed(
                "Upload-Checksum is sha1, sha256, or blake3, and a checksum in base64.".into(),
            ));
        }
    };
    match STANDARD.decode(digest.trim()) {
        Ok(digest) if !digest.is_empty() => Ok(Checksum { algorithm, digest }),
        _ => Err(FieldError::Malformed("The checksum can't be read.".into())),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_are_whole_and_not_negative() {
        assert_eq!(number("Upload-Length", "0").unwrap(), 0);
        assert_eq!(number("Upload-Length", "2097152").unwrap(), 2_097_152);
        for bad in ["", "-1", "+1", "1.5", "0x10", " 1", "1e9", "NaN"] {
            assert!(
                matches!(number("x", bad), Err(FieldError::Malformed(_))),
                "{bad}"
            );
        }
        let huge = "9".repeat(5000);
        assert!(matches!(number("x", &huge), Err(FieldError::TooLarge(_))));
    }

    #[test]
    fn metadata_names_the_file() {
        // "world_domination_plan.pdf", "application/pdf"
        let text = "filename d29ybGRfZG9taW5hdGlvbl9wbGFuLnBkZg==,is_confidential,\
                    filetype YXBwbGljYXRpb24vcGRm";
        let found = metadata(text).unwrap();
        assert_eq!(found.file_name.unwrap(), "world_domination_plan.pdf");
        assert_eq!(found.media_type.unwrap(), "application/pdf");
        assert_eq!(metadata("").unwrap(), Metadata::default());
        let with_comma = metadata("filename YQ==,").unwrap();
        assert_eq!(with_comma.file_name.unwrap(), "a");
        for bad in [
            "a !",
            "a YQ==,a YQ==",
            ",,",
            "a YQ==,,",
            ",a YQ==",
            "filename /w==",
            "ä YQ==",
            &"x".repeat(5000),
        ] {
            assert!(
                matches!(metadata(bad), Err(FieldError::Malformed(_))),
                "{bad}"
            );
        }
        let many: Vec<_> = (0..33).map(|n| format!("n{n}")).collect();
        assert!(metadata(&many.join(",")).is_err());
    }

    #[test]
    fn parts_are_named_by_their_addresses() {
        assert_eq!(concat("partial").unwrap(), Concat::Partial);
        let found = concat("final;/tus/ada/a  http://localhost:1/tus/ada/b ").unwrap();
        assert_eq!(found, Concat::Final(vec!["a".into(), "b".into()]));
        for bad in [
            "",
            "Partial",
            "final",
            "final;",
            "final;a a",
            "final;/x/a /y/a",
            "final;a/",
        ] {
            assert!(concat(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn checksums() {
        let found = checksum("sha1 Kq5sNclPz7QV2+lfQIuc6R7oRu0=").unwrap();
        assert_eq!((found.algorithm, found.digest.len()), (Algorithm::Sha1, 20));
        for bad in ["", "sha1", "sha1 ", "sha1 YQ", "md5 YQ=="] {
            assert!(
                matches!(checksum(bad), Err(FieldError::Malformed(_))),
                "{bad}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text: String) {
            let _ = (number("x", &text), metadata(&text), checksum(&text), concat(&text));
        }
    }
}
