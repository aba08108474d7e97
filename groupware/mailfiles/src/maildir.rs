//! Maildir: a file for each message, in `new` and `cur`, whose name contains the flags; and folders beside each other
//! as in Maildir++, or nested, which Dovecot calls `LAYOUT=fs`.
//!
//! The modification time of a file is the time of receipt, as in Dovecot. Keywords also follow Dovecot: a lower-case
//! letter in the file name for each, with the letters' keywords in a file beside the messages.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::letters::Letters;
use crate::message::{Flags, Message, Read};
use crate::name::{decode_folder, decode_part, encode_folder};

/// A Maildir with its folders.
#[derive(Debug, Clone)]
pub struct Maildir(PathBuf);

/// A folder of a Maildir.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaildirFolder {
    /// The folder's name, with `/` between its parts; `None` for the inbox.
    pub name: Option<String>,
    path: PathBuf,
}

/// The subfolders that every Maildir has.
const OWN: [&str; 3] = ["cur", "new", "tmp"];
/// The maximum nesting depth of folders.
const LEVELS: usize = 32;

fn is_maildir(folder: &Path) -> bool {
    folder.join("cur").is_dir() || folder.join("new").is_dir()
}

/// Collects the folders in a folder with this name, recursively.
fn nested(
    folder: &Path,
    (name, level): (&str, usize),
    found: &mut Vec<MaildirFolder>,
) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (path, part) = (entry.path(), entry.file_name());
        let part = part.to_string_lossy();
        let is_own = OWN.contains(&&*part) || part.starts_with('.');
        // Links are not followed: they may form cycles.
        if is_own || level == LEVELS || !entry.file_type()?.is_dir() {
            continue;
        }
        let name = match name {
            "" => decode_part(&part),
            above => format!("{above}/{}", decode_part(&part)),
        };
        nested(&path, (&name, level + 1), found)?;
        if is_maildir(&path) {
            let name = Some(name);
            found.push(MaildirFolder { name, path });
        }
    }
    Ok(())
}

impl Maildir {
    /// Opens the Maildir in a folder; `None` if the folder is no Maildir.
    pub fn open(folder: &Path) -> Option<Self> {
        is_maildir(folder).then(|| Self(folder.to_path_buf()))
    }

    /// Returns the inbox and the folders, by name.
    ///
    /// # Errors
    /// If a file operation fails.
    pub fn folders(&self) -> io::Result<Vec<MaildirFolder>> {
        let mut folders = Vec::new();
        for entry in fs::read_dir(&self.0)? {
            let entry = entry?;
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            if let Some(name) = name.strip_prefix('.')
                && !name.is_empty()
                && is_maildir(&path)
            {
                let name = Some(decode_folder(name));
                folders.push(MaildirFolder { name, path });
            }
        }
        nested(&self.0, ("", 0), &mut folders)?;
        folders.sort_by(|a, b| a.name.cmp(&b.name));
        let path = self.0.clone();
        folders.insert(0, MaildirFolder { name: None, path });
        Ok(folders)
    }
}

impl MaildirFolder {
    /// Returns the messages in the order of their file names, with a size limit for each. All names are held in memory,
    /// and one message at a time.
    ///
    /// # Errors
    /// If a file operation fails.
    pub fn messages(&self, most: usize) -> io::Result<impl Iterator<Item = io::Result<Read>>> {
        let mut files = Vec::new();
        for part in ["cur", "new"] {
            let folder = self.path.join(part);
            match fs::read_dir(&folder) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
                Ok(entries) => {
                    for entry in entries {
                        files.push((entry?.file_name(), part));
                    }
                }
            }
        }
        files.sort();
        let (folder, known) = (self.path.clone(), Letters::of(&self.path)?);
        let visible = files
            .into_iter()
            .filter(|(name, _)| !name.as_encoded_bytes().starts_with(b"."));
        Ok(visible.filter_map(move |(name, part)| {
            let name_text = name.to_string_lossy();
            let letters = letters_of(&name_text);
            let mut flags = Flags::of_letters(letters);
            let words = known.keywords(letters);
            let words = flags.without_flags(words.iter().map(String::as_str));
            read(&folder.join(part).join(name), (flags, words), most).transpose()
        }))
    }
}

/// Returns the letters after `:2,` in a file name. On file systems without colons, programs write another character.
fn letters_of(name: &str) -> &str {
    let (_, letters) = name.rsplit_once("2,").unwrap_or_default();
    let before = &name[..name.len() - letters.len()];
    let is_mark = [":2,", ";2,", "!2,"]
        .iter()
        .any(|mark| before.ends_with(mark));
    if is_mark { letters } else { "" }
}

/// Reads a message; `None` if the file is no message, or has been removed.
fn read(
    path: &Path,
    (flags, keywords): (Flags, Vec<String>),
    most: usize,
) -> io::Result<Option<Read>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let found = file.metadata()?;
    if !found.is_file() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    io::Read::read_to_end(&mut io::Read::take(file, most as u64 + 1), &mut bytes)?;
    if bytes.len() > most {
        return Ok(Some(Read::TooLarge(path.display().to_string())));
    }
    let modified = found.modified()?.duration_since(SystemTime::UNIX_EPOCH);
    let received_us = modified
        .ok()
        .and_then(|since| i64::try_from(since.as_micros()).ok());
    Ok(Some(Read::Message(Message {
        bytes,
        received_us,
        flags,
        keywords,
    })))
}

/// The result of writing a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Put {
    /// True if the message did not exist.
    pub is_new: bool,
    /// The number of keywords without a letter because none was free.
    pub left_out: usize,
}

/// Writes a Maildir that only its owner can read.
#[derive(Debug)]
pub struct MaildirWriter {
    folder: PathBuf,
}

impl MaildirWriter {
    /// Creates a writer for a folder, which is created if it is missing.
    ///
    /// # Errors
    /// If a file operation fails.
    pub fn new(folder: &Path) -> io::Result<Self> {
        make(folder)?;
        let writer = Self {
            folder: folder.to_path_buf(),
        };
        writer.folder(None)?;
        Ok(writer)
    }

    /// Creates a folder with this name (`None`: the inbox) and returns its path.
    ///
    /// # Errors
    /// If a file operation fails.
    pub fn folder(&self, name: Option<&str>) -> io::Result<PathBuf> {
        let path = match name {
            None => self.folder.clone(),
            Some(name) => self.folder.join(format!(".{}", encode_folder(name))),
        };
        for part in ["", "cur", "new", "tmp"] {
            make(&path.join(part))?;
        }
        if name.is_some() {
            File::options()
                .create(true)
                .append(true)
                .mode(0o600)
                .open(path.join("maildirfolder"))?;
        }
        Ok(path)
    }

    /// Writes a message to a folder created before, under a unique name. An existing file with the same name is kept.
    ///
    /// # Errors
    /// If a file operation fails.
    pub fn write(&self, folder: &Path, unique: &str, message: &Message) -> io::Result<Put> {
        let (letters, left_out) = Letters::for_keywords(folder, &message.keywords)?;
        let name = format!("{unique}:2,{}{letters}", message.flags.letters());
        let (beside, path) = (
            folder.join("tmp").join(unique),
            folder.join("cur").join(name),
        );
        if path.exists() {
            return Ok(Put {
                is_new: false,
                left_out,
            });
        }
        let mut options = File::options();
        let options = options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(&beside)?;
        file.write_all(&message.bytes)?;
        let micros = u64::try_from(message.received_us.unwrap_or_default()).unwrap_or_default();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_micros(micros))?;
        fs::rename(beside, path)?;
        Ok(Put {
            is_new: true,
            left_out,
        })
    }
}

fn make(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
}
