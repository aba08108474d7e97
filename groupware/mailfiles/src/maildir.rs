//! Maildir: a file for each message, in `new` and `cur`, whose name says what it is marked with; and
//! folders beside each other as Maildir++ has them, or in each other, which Dovecot calls `LAYOUT=fs`.
//!
//! When a message came is the time of its file, as Dovecot has it. So are keywords: a small letter in the name of a
//! message's file stands for one, and a file beside the messages says for which.

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
    /// Its name, with `/` between its parts; `None` for the inbox.
    pub name: Option<String>,
    path: PathBuf,
}

/// What a Maildir has besides folders in it.
const OWN: [&str; 3] = ["cur", "new", "tmp"];
/// Most folders that one lies in.
const LEVELS: usize = 32;

fn is_maildir(folder: &Path) -> bool {
    folder.join("cur").is_dir() || folder.join("new").is_dir()
}

/// Collects the folders in a folder, which has this name, and those in them.
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
        // Links are not followed: they may lead around.
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
    /// The Maildir in a folder; `None` where that is none.
    pub fn open(folder: &Path) -> Option<Self> {
        is_maildir(folder).then(|| Self(folder.to_path_buf()))
    }

    /// The inbox and the folders, by name.
    ///
    /// # Errors
    /// The disk's.
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
    /// The messages, in the order of their files' names, of at most so many bytes. All names are held
    /// in memory, and one message at a time.
    ///
    /// # Errors
    /// The disk's.
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

/// The letters behind `:2,` in a file's name. Where a file system takes no colon, programs write another sign.
fn letters_of(name: &str) -> &str {
    let (_, letters) = name.rsplit_once("2,").unwrap_or_default();
    let before = &name[..name.len() - letters.len()];
    let is_mark = [":2,", ";2,", "!2,"]
        .iter()
        .any(|mark| before.ends_with(mark));
    if is_mark { letters } else { "" }
}

/// `None` where it is no message, or gone.
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

/// What came of a message that was to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Put {
    /// It was not there.
    pub is_new: bool,
    /// Keywords that there were no letters left for.
    pub left_out: usize,
}

/// Writes a Maildir, private as mail is.
#[derive(Debug)]
pub struct MaildirWriter {
    folder: PathBuf,
}

impl MaildirWriter {
    /// Writes into a folder, which is made if it isn't there.
    ///
    /// # Errors
    /// The disk's.
    pub fn new(folder: &Path) -> io::Result<Self> {
        make(folder)?;
        let writer = Self {
            folder: folder.to_path_buf(),
        };
        writer.folder(None)?;
        Ok(writer)
    }

    /// Makes a folder of this name, the inbox for none, and gives its path.
    ///
    /// # Errors
    /// The disk's.
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

    /// Writes a message into a folder that was made, under a name that no other has; one that is there
    /// under the name already stays.
    ///
    /// # Errors
    /// The disk's.
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
