//! The first user of a new server: an administrator, named by the configuration.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use groupware_auth::AccountsError;
use groupware_people::{AccountError, UserName};
use groupware_runtime::{Caller, random};
use groupware_service::Service;
use tempfile::NamedTempFile;

use crate::config::Config;
use crate::error::ServeError;

/// The password's file, in the data folder.
const FILE: &str = "first-password";

/// Registers the configured administrator if there is no user at all, and returns the message about
/// it. A terminal shows the password once; otherwise standard error is a log, which others may
/// read, and the password is written to a file.
pub(crate) async fn register(
    config: &Config,
    service: &Service,
    is_terminal: bool,
) -> Result<String, ServeError> {
    let Some(text) = &config.first_admin else {
        return Ok(String::new());
    };
    let name = UserName::parse(text).ok_or_else(|| ServeError::FirstAdmin(text.clone()))?;
    if !service.auth.directory().is_empty() {
        return Ok(String::new());
    }
    let password = random::password();
    let folder = config.data.folder().filter(|_| !is_terminal);
    // Before the user: a registered user must have a password.
    let kept = folder.map(|folder| PasswordFile::write(folder, &password));
    let kept = kept.transpose().map_err(ServeError::FirstPassword)?;
    let caller = Caller::internal();
    let hash = service.auth.passwords.hash(&caller, password.clone()).await;
    let hash = hash.map_err(|_| ServeError::Accounts("busy".into()))?;
    let now_s = service.now_s();
    let added = service.auth.accounts.add(name.clone(), hash, true, now_s);
    match added.await {
        Ok(_) => {}
        // Another server that starts over the same store registered the user first.
        Err(AccountsError::Decided(AccountError::Taken(_))) => return Ok(String::new()),
        Err(error) => return Err(error.into()),
    }
    let name = name.spelling();
    Ok(match kept {
        Some(kept) => {
            let file = kept.settle().map_err(ServeError::FirstPassword)?;
            let file = file.display();
            format!("administrator: {name}; the password is in {file}\n")
        }
        None => format!("administrator: {name}, password: {password}\n"),
    })
}

/// A password in a file that only its owner can ever read. The file is removed with this value unless the user was
/// registered with this password: of several servers that start over one store, one registers the user.
struct PasswordFile {
    file: NamedTempFile,
    path: PathBuf,
}

impl PasswordFile {
    fn write(folder: &Path, password: &str) -> io::Result<Self> {
        let path = folder.join(FILE);
        // A file that a killed start left keeps its longer name.
        let prefix = format!("{FILE}-");
        let mut file = tempfile::Builder::new()
            .prefix(&prefix)
            .tempfile_in(folder)?;
        file.write_all(format!("{password}\n").as_bytes())?;
        file.as_file().sync_all()?;
        Ok(Self { file, path })
    }

    /// Renames the file to its final name.
    fn settle(self) -> io::Result<PathBuf> {
        let Self { file, path } = self;
        file.persist(&path).map_err(|error| error.error)?;
        if let Some(folder) = path.parent() {
            File::open(folder)?.sync_all()?;
        }
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use groupware_service::Settings;
    use groupware_store::{Store, StoreOptions};

    use super::*;
    use groupware_data::Data;

    #[tokio::test]
    async fn only_a_server_without_users_gets_one() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::memory(StoreOptions::default()).unwrap();
        let service = Service::start(store, Settings::default()).unwrap();
        let mut config = Config::new(Data::Folder(folder.path().into()));
        assert_eq!(register(&config, &service, true).await.unwrap(), "");
        config.first_admin = Some("no name".into());
        let wrong = register(&config, &service, true).await.unwrap_err();
        assert!(wrong.is_configuration() && service.auth.directory().is_empty());

        config.first_admin = Some("Ada".into());
        let said = register(&config, &service, false).await.unwrap();
        let file = folder.path().join("first-password");
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let password = std::fs::read_to_string(&file).unwrap();
        assert!(said.contains("first-password") && !said.contains(password.trim()));
        let ada = service.auth.directory().find("ada").unwrap();
        assert!(ada.credentials().admin);
        let (caller, client) = (
            Caller::internal(),
            groupware_http::client(&Caller::internal()),
        );
        let proven = service
            .auth
            .verify(&caller, client, "ada", password.trim())
            .await;
        assert!(proven.unwrap().is_by_own_password());

        config.first_admin = Some("eve".into());
        assert_eq!(register(&config, &service, true).await.unwrap(), "");
        assert!(service.auth.directory().find("eve").is_none());
    }
}
