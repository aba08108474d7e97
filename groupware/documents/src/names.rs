//! Validated names of databases, documents, items, and files. They never name a file of the server:
//! content is stored by its hash.

use std::fmt;

use crate::{DocumentError, limits};

macro_rules! name {
    ($(#[$about:meta])* $name:ident) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name! {
    /// A database: letters, digits, `.`, `_`, `-`, in lower case.
    DatabaseName
}
name! {
    /// A document: 32 upper-case hexadecimal digits.
    Unid
}
name! {
    /// The item of a document that attachments belong to, such as `Body`.
    ItemName
}
name! {
    /// The name of an attached file.
    FileName
}

impl DatabaseName {
    /// Parses a name, with or without `.nsf`, case-insensitively.
    ///
    /// # Errors
    /// 400 if it is invalid.
    pub fn parse(text: &str) -> Result<Self, DocumentError> {
        let name = text.to_ascii_lowercase();
        let name = name.strip_suffix(".nsf").unwrap_or(&name);
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if (1..=limits::NAME_BYTES).contains(&name.len())
            && name.bytes().all(is_plain)
            && !name.starts_with('.')
        {
            return Ok(Self(name.to_owned()));
        }
        Err(DocumentError::bad_request(
            "A database name has 1 to 64 letters, digits, '.', '_', or '-', and does not begin \
             with a dot.",
        ))
    }
}

impl Unid {
    /// Parses an identifier, case-insensitively.
    ///
    /// # Errors
    /// 404 if it is invalid: there is no such document then.
    pub fn parse(text: &str) -> Result<Self, DocumentError> {
        if text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(Self(text.to_ascii_uppercase()));
        }
        Err(DocumentError::not_found("There is no such document."))
    }

    /// Returns the identifier of 128 random bits.
    pub(crate) fn from_bits(bits: u128) -> Self {
        Self(format!("{bits:032X}"))
    }
}

impl ItemName {
    /// Parses the name of an item.
    ///
    /// # Errors
    /// 400 if it is invalid.
    pub fn parse(text: &str) -> Result<Self, DocumentError> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_$-.".contains(&byte);
        if (1..=limits::NAME_BYTES).contains(&text.len())
            && text.bytes().all(is_plain)
            && !text.starts_with('.')
        {
            return Ok(Self(text.to_owned()));
        }
        Err(DocumentError::bad_request(
            "An item name has 1 to 64 letters, digits, '$', '_', '-', or '.'.",
        ))
    }
}

impl FileName {
    /// Parses the name of a file. It must not lead a client that saves the file to another folder.
    ///
    /// # Errors
    /// 400 if it is invalid.
    pub fn parse(text: &str) -> Result<Self, DocumentError> {
        let misleads = |letter: char| {
            letter.is_control()
                || matches!(letter, '/' | '\\')
                // Changes the direction of the following text: `exe.txt` looks like `txt.exe`.
                || groupware_text::is_bidi_override(letter)
        };
        let is_fine = (1..=limits::FILE_NAME_BYTES).contains(&text.len())
            && !text.contains(misleads)
            && !matches!(text, "." | "..");
        match is_fine {
            true => Ok(Self(text.to_owned())),
            false => Err(DocumentError::bad_request(
                "A file name has 1 to 255 bytes, no slash, no backslash, and no control \
                 characters.",
            )),
        }
    }
}

impl FileName {
    /// Returns the name of an upload without one.
    pub fn of_upload(id: &UploadId) -> Self {
        Self(format!("upload-{}", &id.as_str()[..12]))
    }
}

/// The target of attachments: an item of a document in a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemPath {
    /// The database.
    pub database: DatabaseName,
    /// The document.
    pub unid: Unid,
    /// The item.
    pub item: ItemName,
}

/// The id of an upload: 32 lower-case hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UploadId(String);

impl UploadId {
    /// Parses an identifier.
    ///
    /// # Errors
    /// 404 if it is invalid: there is no such upload then.
    pub fn parse(text: &str) -> Result<Self, DocumentError> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if text.len() == 32 && text.bytes().all(is_digit) {
            return Ok(Self(text.to_owned()));
        }
        Err(no_upload())
    }

    /// Returns the identifier of 128 random bits.
    pub fn from_bits(bits: u128) -> Self {
        Self(format!("{bits:032x}"))
    }

    /// The identifier as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for UploadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

pub(crate) fn no_upload() -> DocumentError {
    DocumentError::not_found("There is no such upload, or it has expired.")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_that_mislead_are_refused() {
        for bad in [
            "",
            ".",
            "..",
            "../x",
            "a/b",
            "a\\b",
            "/etc/passwd",
            "C:\\x",
            "a\0b",
            "a\nb",
            "\u{202E}txt.exe",
        ] {
            assert!(FileName::parse(bad).is_err(), "{bad:?}");
            assert!(DatabaseName::parse(bad).is_err(), "{bad:?}");
            assert!(ItemName::parse(bad).is_err(), "{bad:?}");
            assert!(Unid::parse(bad).is_err(), "{bad:?}");
        }
        assert!(FileName::parse(&"x".repeat(256)).is_err());
        for good in ["a b.txt", "ä.pdf", ".profile", "...", "~", "con"] {
            assert_eq!(FileName::parse(good).unwrap().as_str(), good);
        }
        assert_eq!(DatabaseName::parse("Notes.NSF").unwrap().as_str(), "notes");
        assert!(DatabaseName::parse(".hidden").is_err());
        assert!(ItemName::parse("$FILE").is_ok());
    }

    proptest! {
        #[test]
        fn no_text_panics(text: String) {
            let _ = (FileName::parse(&text), DatabaseName::parse(&text));
            let _ = (ItemName::parse(&text), Unid::parse(&text));
        }

        #[test]
        fn identifiers_come_back(bits: u128) {
            let unid = Unid::from_bits(bits);
            prop_assert_eq!(Unid::parse(&unid.as_str().to_lowercase()).unwrap(), unid);
        }
    }
}
