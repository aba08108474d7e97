//! Writes a zip archive to a byte stream, from its beginning to its end. This module doesn't know the contents.
//!
//! Sizes follow each entry, because they are not known before ("data descriptors"). Entries are compressed, because
//! programs that read from a stream require that of such entries. The list of entries for the end of an archive is kept
//! in an unnamed temporary file if it is long. The numbers are those of PKWARE's APPNOTE 6.3.10, §4.3.

use std::io::{self, Seek, SeekFrom, Write};

use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};
use jiff::tz::TimeZone;
use tempfile::SpooledTempFile;

/// The value of a 32-bit field whose number is stored in a 64-bit field elsewhere.
const ELSEWHERE: u32 = u32::MAX;
/// The maximum size of an entry not declared as large, in bytes, compressed or not.
const MOST_SMALL_BYTES: u64 = ELSEWHERE as u64 - 1;
/// The maximum size of the list of entries in memory.
const LIST_BYTES: usize = 1 << 20;
/// Sizes follow; names are UTF-8.
const FLAGS: u16 = 1 << 3 | 1 << 11;
const DEFLATED: u16 = 8;
/// Version 2.0 of the format, and version 4.5, which has 64-bit sizes.
const VERSIONS: [u16; 2] = [20, 45];
/// A file on Unix that only its owner may read.
const MADE_ON_UNIX: u16 = 3 << 8;
const MODE: u32 = 0o100_600 << 16;
/// The extra field with 64-bit numbers.
const LARGE: u16 = 1;

/// A writer that counts its bytes.
#[derive(Debug)]
struct Counted<W> {
    to: W,
    bytes: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// An archive being written.
#[derive(Debug)]
pub(crate) struct Zip<W> {
    to: Counted<W>,
    list: SpooledTempFile,
    entries: u64,
}

/// An entry being written; receives its bytes.
pub(crate) struct Entry<'a, W: Write> {
    deflate: DeflateEncoder<&'a mut Counted<W>>,
    list: &'a mut SpooledTempFile,
    crc: Crc,
    bytes: u64,
    /// The positions of the entry and of its compressed bytes.
    begins: (u64, u64),
    name: String,
    moment: u32,
    is_large: bool,
}

/// A header as a sequence of numbers.
#[derive(Default)]
struct Header(Vec<u8>);

impl Header {
    fn new(signature: u32) -> Self {
        Self::default().n32(signature)
    }

    fn n16(mut self, number: u16) -> Self {
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    fn n32(mut self, number: u32) -> Self {
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    fn n64(mut self, number: u64) -> Self {
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    fn text(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }
}

fn low(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(ELSEWHERE)
}

/// Encodes a moment in the format of MS-DOS: in steps of two seconds, from 1980 on.
fn dos_moment(seconds: i64) -> u32 {
    let first = 1 << 21 | 1 << 16;
    let Ok(moment) = jiff::Timestamp::from_second(seconds) else {
        return first;
    };
    let at = moment.to_zoned(TimeZone::UTC).datetime();
    let Ok(years @ 0..128) = u32::try_from(i32::from(at.year()) - 1980) else {
        return first;
    };
    let part = |number: i8| u32::from(number.unsigned_abs());
    let day = years << 9 | part(at.month()) << 5 | part(at.day());
    day << 16 | part(at.hour()) << 11 | part(at.minute()) << 5 | (part(at.second()) / 2)
}

impl<W: Write> Zip<W> {
    pub(crate) fn new(to: W) -> Self {
        Self {
            to: Counted { to, bytes: 0 },
            list: SpooledTempFile::new(LIST_BYTES),
            entries: 0,
        }
    }

    /// Begins an entry of a file last modified at this moment, in seconds since 1970. An entry that may reach 4 GiB
    /// must be declared as large. Names are at most 65,535 bytes long.
    pub(crate) fn entry(
        &mut self,
        name: &str,
        seconds: i64,
        is_large: bool,
    ) -> io::Result<Entry<'_, W>> {
        let length = u16::try_from(name.len()).map_err(io::Error::other)?;
        let (begins, moment) = (self.to.bytes, dos_moment(seconds));
        let (size, extra) = match is_large {
            true => (
                ELSEWHERE,
                Header::default().n16(LARGE).n16(16).n64(0).n64(0),
            ),
            false => (0, Header::default()),
        };
        let head = Header::new(0x0403_4b50)
            .n16(VERSIONS[usize::from(is_large)])
            .n16(FLAGS)
            .n16(DEFLATED)
            .n32(moment)
            .n32(0)
            .n32(size)
            .n32(size)
            .n16(length)
            .n16(extra.0.len() as u16)
            .text(name.as_bytes())
            .text(&extra.0);
        self.to.write_all(&head.0)?;
        self.entries += 1;
        let after_head = self.to.bytes;
        Ok(Entry {
            deflate: DeflateEncoder::new(&mut self.to, Compression::fast()),
            list: &mut self.list,
            crc: Crc::new(),
            bytes: 0,
            begins: (begins, after_head),
            name: name.to_owned(),
            moment,
            is_large,
        })
    }

    /// Writes the list of entries and the end of the archive.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        let begins = self.to.bytes;
        self.list.seek(SeekFrom::Start(0))?;
        io::copy(&mut self.list, &mut self.to)?;
        let ends = self.to.bytes;
        let bytes = ends - begins;
        let count = u16::try_from(self.entries).unwrap_or(u16::MAX);
        if count == u16::MAX || ends >= u64::from(ELSEWHERE) {
            let large = Header::new(0x0606_4b50)
                .n64(44)
                .n16(MADE_ON_UNIX | VERSIONS[1])
                .n16(VERSIONS[1])
                .n32(0)
                .n32(0)
                .n64(self.entries)
                .n64(self.entries)
                .n64(bytes)
                .n64(begins);
            self.to.write_all(&large.0)?;
            let place = Header::new(0x0706_4b50).n32(0).n64(ends).n32(1);
            self.to.write_all(&place.0)?;
        }
        let end = Header::new(0x0605_4b50)
            .n16(0)
            .n16(0)
            .n16(count)
            .n16(count)
            .n32(low(bytes))
            .n32(low(begins))
            .n16(0);
        self.to.write_all(&end.0)?;
        self.to.flush()
    }
}

impl<W: Write> Entry<'_, W> {
    /// Ends the entry.
    pub(crate) fn finish(self) -> io::Result<()> {
        let to = self.deflate.finish()?;
        let (begins, after_head) = self.begins;
        let (crc, bytes) = (self.crc.sum(), self.bytes);
        let compressed = to.bytes - after_head;
        let tail = Header::new(0x0807_4b50).n32(crc);
        let tail = match self.is_large {
            true => tail.n64(compressed).n64(bytes),
            false if compressed.max(bytes) > MOST_SMALL_BYTES => {
                let text = format!("{} has grown beyond 4 GiB meanwhile", self.name);
                return Err(io::Error::other(text));
            }
            false => tail.n32(low(compressed)).n32(low(bytes)),
        };
        to.write_all(&tail.0)?;
        let mut large = Header::default();
        for number in [bytes, compressed, begins] {
            if low(number) == ELSEWHERE {
                large = large.n64(number);
            }
        }
        let is_large = self.is_large || !large.0.is_empty();
        let extra = match large.0.len() {
            0 => large,
            length => Header::default()
                .n16(LARGE)
                .n16(length as u16)
                .text(&large.0),
        };
        let version = VERSIONS[usize::from(is_large)];
        let line = Header::new(0x0201_4b50)
            .n16(MADE_ON_UNIX | version)
            .n16(version)
            .n16(FLAGS)
            .n16(DEFLATED)
            .n32(self.moment)
            .n32(crc)
            .n32(low(compressed))
            .n32(low(bytes))
            .n16(self.name.len() as u16)
            .n16(extra.0.len() as u16)
            .n16(0)
            .n16(0)
            .n16(0)
            .n32(MODE)
            .n32(low(begins))
            .text(self.name.as_bytes())
            .text(&extra.0);
        self.list.write_all(&line.0)
    }
}

impl<W: Write> Write for Entry<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.deflate.write(bytes)?;
        self.crc.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_tests::zip::read;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn written(entries: &[(String, Vec<u8>, bool)]) -> Vec<u8> {
        let mut archive = Vec::new();
        let mut zip = Zip::new(&mut archive);
        for (name, bytes, is_large) in entries {
            let mut entry = zip.entry(name, 1_795_357_807, *is_large).unwrap();
            entry.write_all(bytes).unwrap();
            entry.finish().unwrap();
        }
        zip.finish().unwrap();
        archive
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(
            entries in vec((".{1,20}", vec(any::<u8>(), 0..3000), any::<bool>()), 0..8)
        ) {
            let entries: Vec<_> = entries
                .into_iter()
                .enumerate()
                .map(|(at, (name, bytes, is_large))| (format!("{at}{name}"), bytes, is_large))
                .collect();
            let found = read(&written(&entries));
            let expected = entries.into_iter().map(|(name, bytes, _)| (name, bytes));
            prop_assert_eq!(found, expected.collect());
        }
    }

    #[test]
    fn an_archive_has_more_entries_than_sixteen_bits_count() {
        let entries: Vec<_> = (0..70_000)
            .map(|number| (format!("{number}"), Vec::new(), false))
            .collect();
        assert_eq!(read(&written(&entries)).len(), 70_000);
    }

    #[test]
    fn moments_are_those_of_ms_dos() {
        // 2026-11-22 14:30:07 UTC.
        let moment = dos_moment(1_795_357_807);
        let (day, time) = (moment >> 16, moment & 0xffff);
        assert_eq!((day >> 9, day >> 5 & 15, day & 31), (46, 11, 22));
        assert_eq!((time >> 11, time >> 5 & 63, time & 31), (14, 30, 3));
        for outside in [i64::MIN, 0, 315_532_799, 4_354_819_200, i64::MAX] {
            assert_eq!(dos_moment(outside) >> 16, 1 << 5 | 1, "{outside}");
        }
    }
}
