//! A database as given on the command line, with its password from elsewhere: `PGPASSWORD`, or the file that
//! PostgreSQL's own programs read.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use groupware_server::{Database, Records};

use crate::exit::{Exit, Failure};
use crate::private_file::read;

/// Returns true if a text names a database, and not a folder.
pub(crate) fn is_address(place: &str) -> bool {
    place.starts_with("postgres://") || place.starts_with("postgresql://")
}

/// Parses an address, and looks up its password if it has none.
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

/// Parses a database's address, or a data folder.
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

#[cfg(test)]
mod tests {
    use super::*;

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
