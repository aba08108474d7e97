//! Finds the files to import, and reads them.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The maximum nesting depth of folders.
const LEVELS: usize = 16;
/// The maximum size of a file that is read.
const FILE_BYTES: u64 = 256 << 20;

/// Returns the files to import: given files, and the `.ics` files in given folders and their subfolders, in the order
/// of their names. Hidden files are skipped; Radicale hides its own files.
///
/// # Errors
/// The path that can't be read, and the reason.
pub fn files(sources: &[PathBuf]) -> Result<Vec<PathBuf>, (PathBuf, io::Error)> {
    let mut found = Vec::new();
    for source in sources {
        let of = |error| (source.clone(), error);
        match fs::metadata(source).map_err(of)?.is_dir() {
            true => collect(source, LEVELS, &mut found)?,
            false => found.push(source.clone()),
        }
    }
    Ok(found)
}

fn collect(
    folder: &Path,
    levels: usize,
    found: &mut Vec<PathBuf>,
) -> Result<(), (PathBuf, io::Error)> {
    let of = |error| (folder.to_owned(), error);
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let mut entries = entries.map_err(of)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, kind) = (entry.path(), entry.file_type().map_err(of)?);
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        let ending = path.extension();
        let is_calendar = ending.is_some_and(|it| it.eq_ignore_ascii_case("ics"));
        match levels.checked_sub(1) {
            Some(levels) if kind.is_dir() => collect(&path, levels, found)?,
            _ if kind.is_file() && is_calendar => found.push(path),
            _ => {}
        }
    }
    Ok(())
}

/// Reads a file; `None` if it has more than 256 MiB.
///
/// # Errors
/// If it can't be read.
pub fn read(file: &Path) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    let mut file = File::open(file)?.take(FILE_BYTES + 1);
    file.read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= FILE_BYTES).then_some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_have_the_files_of_those_below_them() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("b/.cache")).unwrap();
        for name in [
            "b/2.ics",
            "b/1.ICS",
            "b/.cache/3.ics",
            ".4.ics",
            "a.ics",
            "x.vcf",
        ] {
            fs::write(at(name), "").unwrap();
        }
        let expected = ["x.vcf", "a.ics", "b/1.ICS", "b/2.ics"].map(at);
        assert_eq!(files(&[at("x.vcf"), at("")]).unwrap(), expected);
        let (place, error) = files(&[at("none")]).unwrap_err();
        assert_eq!((place, error.kind()), (at("none"), io::ErrorKind::NotFound));
        assert_eq!(read(&at("a.ics")).unwrap(), Some(Vec::new()));
    }
}
