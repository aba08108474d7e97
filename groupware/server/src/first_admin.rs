//! The first user of a new server: an administrator, whom somebody names at the start.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use groupware_people::{AccountError, UserName};
use groupware_service::{AccountsError, Caller, Service, random};

use crate::config::Config;
use crate::error::ServeError;

/// Registers the administrator that the configuration names, if there is no user at all, and gives what
/// is to be said of it. The password is shown to a person once; elsewhere standard error is a log, which
/// others may read, and the password is in a file.
pub(crate) async fn register(
    config: &Config,
    service: &Service,
    is_terminal: bool,
) -> Result<String, ServeError> {
    let Some(text) = &config.first_admin else {
        return Ok(String::new());
    };
    let name = UserName::parse(text).ok_or_else(|| ServeError::FirstAdmin(text.clone()))?;
    if !service.directory().is_empty() {
        return Ok(String::new());
    }
    let password = random::password();
    let file = path(config).filter(|_| !is_terminal);
    if let Some(file) = &file {
        // Before the user: whoever has a user has a password.
        write(file, &password).map_err(ServeError::FirstPassword)?;
    }
    let caller = Caller::internal();
    let hash = service.passwords.hash(&caller, password.clone()).await;
    let hash = hash.map_err(|_| ServeError::Accounts("busy".into()))?;
    let now_s = service.now_s();
    let added = service.accounts.add(name.clone(), hash, true, now_s);
    match added.await {
        Ok(_) => {}
        // Another server that starts over the same store was faster.
        Err(AccountsError::Decided(AccountError::Taken(_))) => return Ok(String::new()),
        Err(error) => return Err(error.into()),
    }
    let name = name.spelling();
    Ok(match file {
        Some(file) => format!(
            "administrator: {name}; the password is in {}\n",
            file.display()
        ),
        None => format!("administrator: {name}, password: {password}\n"),
    })
}

/// Where the password is kept.
fn path(config: &Config) -> Option<PathBuf> {
    let folder = config.data.folder()?;
    Some(folder.join("first-password"))
}

/// Nobody else can read it at any moment. One that a start which ended too early left is of no use.
fn write(path: &PathBuf, password: &str) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = File::options();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(format!("{password}\n").as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use groupware_service::Settings;
    use groupware_store::{Store, StoreOptions};

    use super::*;
    use crate::config::Data;

    #[tokio::test]
    async fn only_a_server_without_users_gets_one() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::memory(StoreOptions::default()).unwrap();
        let service = Service::start(store, Settings::default()).unwrap();
        let mut config = Config::new(Data::Folder(folder.path().into()));
        assert_eq!(register(&config, &service, true).await.unwrap(), "");
        config.first_admin = Some("no name".into());
        let wrong = register(&config, &service, true).await.unwrap_err();
        assert!(wrong.is_configuration() && service.directory().is_empty());

        config.first_admin = Some("Ada".into());
        let said = register(&config, &service, false).await.unwrap();
        let file = folder.path().join("first-password");
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let password = std::fs::read_to_string(&file).unwrap();
        assert!(said.contains("first-password") && !said.contains(password.trim()));
        let ada = service.directory().find("ada").unwrap();
        assert!(ada.credentials().admin);
        let (caller, client) = (
            Caller::internal(),
            groupware_http::client(&Caller::internal()),
        );
        let proven = service
            .verify(&caller, client, "ada", password.trim())
            .await;
        assert!(proven.unwrap().is_by_own_password());

        config.first_admin = Some("eve".into());
        assert_eq!(register(&config, &service, true).await.unwrap(), "");
        assert!(service.directory().find("eve").is_none());
    }
}
