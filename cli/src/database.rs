//! A database as it is named on the command line, with the password that is kept elsewhere: in `PGPASSWORD`, or
//! in the file that PostgreSQL's own programs look it up in.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use groupware_server::{Database, Records};

use crate::exit::{Exit, Failure};

/// Largest file of passwords.
const PASSFILE_BYTES: u64 = 64 << 10;
/// The rights of others on a file.
const OTHERS: u32 = 0o077;

/// Whether a text names a database, and not a folder.
pub(crate) fn is_address(place: &str) -> bool {
    place.starts_with("postgres://") || place.starts_with("postgresql://")
}

/// Reads an address, and finds its password where it has none.
pub(crate) fn database(address: &str) -> Result<Database, Failure> {
    let parsed = Database::parse(address);
    let database = parsed.map_err(|error| Failure::new(Exit::BadInput, &error))?;
    if !database.wants_password() {
        return Ok(database);
    }
    if let Ok(password) = std::env::var("PGPASSWORD") {
        return Ok(database.with_password(&password));
    }
    match passfile() {
        Some((file, must_be_there)) => match read(&file)? {
            Some(text) => Ok(database.with_passfile(&text)),
            None if must_be_there => {
                let words = format!("PGPASSFILE names {}, which isn't there", file.display());
                Err(Failure::text(Exit::BadInput, words))
            }
            None => Ok(database),
        },
        None => Ok(database),
    }
}

/// A database by its address, or a data folder.
pub(crate) fn records(place: &str) -> Result<Records, Failure> {
    match is_address(place) {
        true => database(place).map(Records::Database),
        false => Ok(Records::Folder(place.into())),
    }
}

fn passfile() -> Option<(PathBuf, bool)> {
    let set = |name| std::env::var_os(name).filter(|value: &OsString| !value.is_empty());
    let named = set("PGPASSFILE").map(|file| (file.into(), true));
    named.or_else(|| {
        let home = set("HOME")?;
        Some((Path::new(&home).join(".pgpass"), false))
    })
}

fn read(file: &Path) -> Result<Option<String>, Failure> {
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
    if found.len() > PASSFILE_BYTES {
        return Err(wrong(format!("it is larger than {PASSFILE_BYTES} bytes")));
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

    #[test]
    fn a_place_is_a_database_or_a_folder() {
        let folder = records("plimsoll-data").unwrap();
        assert_eq!(folder, Records::Folder("plimsoll-data".into()));
        let database = records("postgres://me:secret@localhost/mail").unwrap();
        assert_eq!(database.to_string(), "postgres://me@localhost:5432/mail");
        let wrong = records("postgres://me:secret@localhost/mail?x=1").unwrap_err();
        assert!(!wrong.to_string().contains("secret"), "{wrong}");
    }
}
