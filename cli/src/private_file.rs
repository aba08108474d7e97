//! Files with secrets, which only their owner may read.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::exit::{Exit, Failure};

/// The maximum bytes of a file.
const FILE_BYTES: u64 = 64 << 10;
/// The permission bits of other users.
const OTHERS: u32 = 0o077;

/// Reads a file; `None` if it doesn't exist.
pub(crate) fn read(file: &Path) -> Result<Option<String>, Failure> {
    let wrong = |words: String| {
        Failure::text(
            Exit::BadInput,
            format!("cannot read {}: {words}", file.display()),
        )
    };
    let found = match fs::metadata(file) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(wrong(error.to_string())),
    };
    if found.permissions().mode() & OTHERS != 0 {
        let hint = format!("chmod 600 {}", file.display());
        return Err(wrong("others may read the passwords in it".to_owned()).hint(hint));
    }
    if found.len() > FILE_BYTES {
        return Err(wrong(format!("it is larger than {FILE_BYTES} bytes")));
    }
    let text = fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;

    use super::*;

    #[test]
    fn a_file_of_passwords_is_its_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pgpass");
        assert!(read(&file).unwrap().is_none());
        fs::write(&file, "*:*:*:*:secret\n").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        let refused = read(&file).unwrap_err().to_string();
        assert!(
            refused.contains("others may read") && refused.contains("chmod 600"),
            "{refused}"
        );
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        assert!(read(&file).unwrap().is_some());
    }
}
