//! The token that the admin interface asks for: from the configuration, from a file, or made.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use groupware_runtime::random;

use crate::first_line;

/// Shortest token that a file or the configuration may give.
const MIN_BYTES: usize = 16;
/// Longest file that is taken for a token.
const MAX_BYTES: u64 = 4096;

/// A token, and whether nobody has seen it yet.
#[derive(Clone)]
pub struct AdminToken {
    /// What is asked for.
    pub text: String,
    /// Whether it was made just now.
    pub is_new: bool,
}

impl fmt::Debug for AdminToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdminToken").finish_non_exhaustive()
    }
}

impl AdminToken {
    /// The one that is given, or that of a file; else makes one, and keeps it there if there is to be a file.
    ///
    /// # Errors
    /// When the file can't be read or written. Of the kind [`io::ErrorKind::InvalidData`], when what is there is none.
    pub fn find_or_make(given: Option<&str>, file: Option<&Path>) -> io::Result<Self> {
        if let Some(token) = given {
            return known(token);
        }
        let Some(path) = file else {
            return Ok(Self {
                text: random::secret(),
                is_new: true,
            });
        };
        match read(path) {
            Ok(text) => known(&text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => make(path),
            Err(error) => Err(error),
        }
    }
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

/// Unless another start has been faster.
fn make(path: &Path) -> io::Result<AdminToken> {
    let text = random::secret();
    match first_line::write(path, &text)? {
        true => Ok(AdminToken { text, is_new: true }),
        false => known(&read(path)?),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_token_is_made_once_and_then_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("admin-token");
        let made = AdminToken::find_or_make(None, Some(&file)).unwrap();
        assert!(made.is_new && made.text.len() >= 22);
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let read = AdminToken::find_or_make(None, Some(&file)).unwrap();
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
        let given = |token| AdminToken::find_or_make(Some(token), None);
        assert!(given("short").is_err());
        assert_eq!(
            given(" 0123456789abcdef\n").unwrap().text,
            "0123456789abcdef"
        );
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("empty");
        fs::write(&file, "").unwrap();
        assert!(AdminToken::find_or_make(None, Some(&file)).is_err());
    }
}
