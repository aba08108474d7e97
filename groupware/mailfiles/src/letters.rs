//! Letters for keywords in the file names of a Maildir folder, as in Dovecot: the file `dovecot-keywords` has a line
//! for each keyword, with the letter's number from 0 on.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use groupware_text::{is_keyword, keywords};

const FILE: &str = "dovecot-keywords";
/// The maximum size of a file that is read: one with 26 keywords is smaller.
const FILE_BYTES: u64 = 64 << 10;
/// The number of letters, from `a` to `z`.
const LETTERS: usize = 26;

/// The keywords of a folder by letter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Letters([Option<String>; LETTERS]);

impl Letters {
    /// Reads the keywords of the folder at this path; none if the file is missing or invalid.
    pub(crate) fn of(folder: &Path) -> io::Result<Self> {
        let mut bytes = Vec::new();
        match File::open(folder.join(FILE)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            file => file?.take(FILE_BYTES).read_to_end(&mut bytes)?,
        };
        Ok(Self::parse(&String::from_utf8_lossy(&bytes)))
    }

    fn parse(text: &str) -> Self {
        let mut letters = Self::default();
        for line in text.lines() {
            let Some((number, word)) = line.split_once(' ') else {
                continue;
            };
            let Ok(at) = number.parse::<usize>() else {
                continue;
            };
            if let Some(place) = letters.0.get_mut(at).filter(|_| is_keyword(word)) {
                *place = Some(word.to_owned());
            }
        }
        letters
    }

    /// Returns the keywords of the lower-case ones among these letters.
    pub(crate) fn keywords(&self, letters: &str) -> Vec<String> {
        let small = letters.bytes().filter(u8::is_ascii_lowercase);
        let words = small.filter_map(|letter| self.0[usize::from(letter - b'a')].as_deref());
        keywords(words)
    }

    /// Returns the letters for a message's keywords in a folder, in alphabetical order, and the number of keywords
    /// without a letter because none was free. New keywords are added to the folder's file.
    pub(crate) fn for_keywords(folder: &Path, words: &[String]) -> io::Result<(String, usize)> {
        let words = keywords(words.iter().map(String::as_str));
        if words.is_empty() {
            return Ok((String::new(), 0));
        }
        let mut known = Self::of(folder)?;
        let (mut places, mut new) = (Vec::new(), String::new());
        for word in &words {
            let is_it = |place: &Option<String>| {
                let there = place.as_deref();
                there.is_some_and(|there| there.eq_ignore_ascii_case(word))
            };
            let there = known.0.iter().position(is_it);
            let place = there.or_else(|| known.0.iter().position(Option::is_none));
            let Some(place) = place else {
                continue;
            };
            if there.is_none() {
                known.0[place] = Some(word.clone());
                new += &format!("{place} {word}\n");
            }
            places.push(place);
        }
        if !new.is_empty() {
            // Written before a file name contains the letter.
            let mut options = File::options();
            let options = options.create(true).append(true).mode(0o600);
            options.open(folder.join(FILE))?.write_all(new.as_bytes())?;
        }
        places.sort_unstable();
        let left_out = words.len() - places.len();
        Ok((places.into_iter().map(letter).collect(), left_out))
    }
}

/// Returns the letter of a number below 26.
fn letter(place: usize) -> char {
    u8::try_from(place).map_or('z', |place| char::from(b'a' + place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_dovecot_writes_is_read_and_the_rest_passed_over() {
        let letters = Letters::parse("0 $Junk\n3 work\n26 far\n-1 x\nno\n1 (\n2\n25 z\n");
        assert_eq!(letters.keywords("FSazbd"), ["$Junk", "work", "z"]);
        assert_eq!(letters.keywords("FS"), Vec::<String>::new());
    }

    #[test]
    fn letters_are_given_once_and_run_out() {
        let folder = tempfile::tempdir().unwrap();
        let take = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            Letters::for_keywords(folder.path(), &words).unwrap()
        };
        assert_eq!(take(&[]), (String::new(), 0));
        assert!(!folder.path().join(FILE).exists());
        assert_eq!(take(&["b", "a"]), ("ab".into(), 0));
        assert_eq!(take(&["A", "c"]), ("ac".into(), 0));
        for number in 3..LETTERS {
            take(&[format!("k{number}").as_str()]);
        }
        assert_eq!(take(&["late", "k25", "later", "B"]), ("bz".into(), 2));
        let known = Letters::of(folder.path()).unwrap();
        assert_eq!(known.keywords("zab"), ["a", "b", "k25"]);
    }
}
