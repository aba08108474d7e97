//! An object store as given on the command line, with its credentials from elsewhere: the variables, or the file, that
//! AWS' own programs read.

use std::path::{Path, PathBuf};

use groupware_server::{ObjectAddress, ObjectCredentials, ObjectPlace};

use crate::exit::{Exit, Failure};
use crate::private_file::read;

/// Parses an address, and looks up the credentials.
pub(crate) fn object_place(address: &str) -> Result<ObjectPlace, Failure> {
    let address = ObjectAddress::parse(address);
    let address = address.map_err(|error| Failure::new(Exit::BadInput, &error))?;
    Ok(ObjectPlace {
        address,
        credentials: credentials()?,
    })
}

fn set(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn credentials() -> Result<ObjectCredentials, Failure> {
    match (set("AWS_ACCESS_KEY_ID"), set("AWS_SECRET_ACCESS_KEY")) {
        (Some(key_id), Some(secret)) => {
            let token = set("AWS_SESSION_TOKEN");
            Ok(ObjectCredentials::new(&key_id, &secret, token.as_deref()))
        }
        (None, None) => of_file(),
        _ => {
            let words = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY belong together";
            Err(Failure::text(Exit::BadInput, words))
        }
    }
}

fn of_file() -> Result<ObjectCredentials, Failure> {
    let named = set("AWS_SHARED_CREDENTIALS_FILE").map(PathBuf::from);
    let usual = || Some(Path::new(&set("HOME")?).join(".aws/credentials"));
    let none = || {
        Failure::text(Exit::BadInput, "there are no credentials for the object store").hint(
            "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_SHARED_CREDENTIALS_FILE to a file \
             that has them; with systemd, LoadCredential= keeps that file",
        )
    };
    let file = named.or_else(usual).ok_or_else(none)?;
    let text = read(&file)?.ok_or_else(none)?;
    let profile = set("AWS_PROFILE").unwrap_or_else(|| "default".to_owned());
    ObjectCredentials::of_profile(&text, &profile).map_err(|error| {
        let words = format!("{}: {error}", file.display());
        Failure::text(Exit::BadInput, words)
    })
}
