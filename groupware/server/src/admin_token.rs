//! The token that the admin interface asks for: from the configuration, from a file, or made.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use groupware_service::random;

use crate::config::Config;

/// Shortest token that a file or the configuration may give.
const MIN_BYTES: usize = 16;
/// Longest file that is taken for a token.
const MAX_BYTES: u64 = 4096;

/// A token, and whether nobody has seen it yet.
pub(crate) struct AdminToken {
    pub(crate) text: String,
    pub(crate) is_new: bool,
}

/// Finds the token or makes one.
pub(crate) fn find_or_make(config: &Config) -> io::Result<AdminToken> {
    if let Some(token) = &config.admin_token {
        return known(token);
    }
    let Some(path) = path(config) else {
        return Ok(AdminToken {
            text: random::secret(),
            is_new: true,
        });
    };
    match read(&path) {
        Ok(text) => known(&text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => make(&path),
        Err(error) => Err(error),
    }
}

/// The file that holds the token, if there is to be one.
pub(crate) fn path(config: &Config) -> Option<PathBuf> {
    config
        .admin_token_file
        .clone()
        .or_else(|| Some(config.data.folder()?.join("admin-token")))
}

fn known(text: &str) -> io::Result<AdminToken> {
    let text = text.trim();
    if text.len() < MIN_BYTES {
        let message = format!("the admin token has fewer than {MIN_BYTES} characters");
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    Ok(AdminToken {
        text: text.into(),
        is_new: false,
    })
}

fn read(path: &Path) -> io::Result<String> {
    if fs::metadata(path)?.len() > MAX_BYTES {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the file is too long for a token",
        ));
    }
    fs::read_to_string(path)
}

/// Written whole beside the file and then given its name, unless another start has been faster: a
/// full disk or a kill at any moment leaves no half of a token to be found later.
fn make(path: &Path) -> io::Result<AdminToken> {
    let text = random::secret();
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(
        ".{:016x}.partial",
        u64::from_le_bytes(random::bytes())
    ));
    let beside = PathBuf::from(beside);
    let placed = write(&beside, &text).and_then(|()| fs::hard_link(&beside, path));
    // A leftover is a token that opens nothing.
    let _ = fs::remove_file(&beside);
    match placed {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return known(&read(path)?),
        Err(error) => return Err(error),
    }
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
    Ok(AdminToken { text, is_new: true })
}

/// `create_new` with the mode set at once: nobody else can read the file at any moment.
fn write(path: &Path, token: &str) -> io::Result<()> {
    let mut file = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(format!("{token}\n").as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::config::Data;

    #[test]
    fn a_token_is_made_once_and_then_read() {
        let folder = tempfile::tempdir().unwrap();
        let config = Config::new(Data::Folder(folder.path().into()));
        let made = find_or_make(&config).unwrap();
        assert!(made.is_new && made.text.len() >= 22);
        let mode = fs::metadata(folder.path().join("admin-token"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        let read = find_or_make(&config).unwrap();
        assert_eq!((read.text, read.is_new), (made.text, false));
    }

    #[test]
    fn several_starts_agree_on_one_whole_token() {
        let folder = tempfile::tempdir().unwrap();
        for round in 0..20 {
            let file = folder.path().join(format!("token-{round}"));
            let together = std::sync::Barrier::new(8);
            let found: Vec<_> = std::thread::scope(|scope| {
                let start = || {
                    together.wait();
                    make(&file).unwrap()
                };
                let starts: Vec<_> = (0..8).map(|_| scope.spawn(start)).collect();
                starts
                    .into_iter()
                    .map(|start| start.join().unwrap())
                    .collect()
            });
            assert_eq!(found.iter().filter(|token| token.is_new).count(), 1);
            assert!(found.iter().all(|token| token.text == found[0].text));
        }
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count(),
            20,
            "no leftovers"
        );
    }

    #[test]
    fn short_tokens_are_refused() {
        let mut config = Config::new(Data::Memory);
        config.admin_token = Some("short".into());
        assert!(find_or_make(&config).is_err());
        config.admin_token = Some(" 0123456789abcdef\n".into());
        assert_eq!(find_or_make(&config).unwrap().text, "0123456789abcdef");
        let folder = tempfile::tempdir().unwrap();
        config.admin_token = None;
        config.admin_token_file = Some(folder.path().join("empty"));
        fs::write(folder.path().join("empty"), "").unwrap();
        assert!(find_or_make(&config).is_err());
    }
}
