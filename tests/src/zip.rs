//! Reads a zip archive strictly, by its list of entries, as PKWARE's APPNOTE specifies: for tests of zip writers.

use std::collections::BTreeMap;
use std::io::Read;

use flate2::Crc;
use flate2::read::DeflateDecoder;

/// Reads numbers at offsets in an archive.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn number(&self, at: u64, length: usize) -> u64 {
        let at = usize::try_from(at).expect("a place in memory");
        let mut bytes = [0; 8];
        bytes[..length].copy_from_slice(&self.0[at..at + length]);
        u64::from_le_bytes(bytes)
    }

    fn slice(&self, at: u64, length: u64) -> &'a [u8] {
        &self.0[at as usize..(at + length) as usize]
    }

    /// Takes numbers of 64 bits from the extra field, for those that don't fit elsewhere.
    fn large(&self, (at, length): (u64, u64), numbers: [&mut u64; 3]) {
        let mut wanted: Vec<_> = numbers
            .into_iter()
            .filter(|number| **number == u64::from(u32::MAX))
            .collect();
        if length == 0 {
            assert!(wanted.is_empty(), "a large number is missing");
            return;
        }
        assert_eq!(self.number(at, 2), 1, "the field is of another kind");
        assert_eq!(self.number(at + 2, 2), length - 4);
        assert_eq!(length - 4, 8 * wanted.len() as u64);
        for (number, place) in wanted.iter_mut().zip(0..) {
            **number = self.number(at + 4 + 8 * place, 8);
        }
    }
}

/// Returns the entries of an archive, by name. Checks everything: heads, sizes, and checksums.
///
/// # Panics
/// If anything is wrong.
pub fn read(archive: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let bytes = Bytes(archive);
    let end = archive.len() as u64 - 22;
    assert_eq!(bytes.number(end, 4), 0x0605_4b50, "the end is no end");
    let (mut count, mut length, mut at) = (
        bytes.number(end + 10, 2),
        bytes.number(end + 12, 4),
        bytes.number(end + 16, 4),
    );
    let mut list_end = end;
    if end >= 20 && bytes.number(end - 20, 4) == 0x0706_4b50 {
        let large = bytes.number(end - 12, 8);
        assert_eq!(bytes.number(large, 4), 0x0606_4b50);
        assert_eq!(bytes.number(large + 4, 8), 44);
        (count, length, at) = (
            bytes.number(large + 32, 8),
            bytes.number(large + 40, 8),
            bytes.number(large + 48, 8),
        );
        list_end = large;
    }
    assert_eq!(at + length, list_end, "the list ends elsewhere");
    let mut entries = BTreeMap::new();
    let mut next = 0;
    for _ in 0..count {
        assert_eq!(bytes.number(at, 4), 0x0201_4b50);
        let flags = bytes.number(at + 8, 2);
        assert_eq!((flags, bytes.number(at + 10, 2)), (0x0808, 8));
        let crc = bytes.number(at + 16, 4);
        let mut compressed = bytes.number(at + 20, 4);
        let mut size = bytes.number(at + 24, 4);
        let (name, extra) = (bytes.number(at + 28, 2), bytes.number(at + 30, 2));
        let mut begins = bytes.number(at + 42, 4);
        let numbers = [&mut size, &mut compressed, &mut begins];
        bytes.large((at + 46 + name, extra), numbers);
        let text = String::from_utf8(bytes.slice(at + 46, name).to_vec()).expect("UTF-8");
        assert_eq!(begins, next, "{text} leaves a hole");
        let head = begins;
        assert_eq!(bytes.number(head, 4), 0x0403_4b50);
        assert_eq!(bytes.slice(head + 30, name), text.as_bytes());
        let has_large = bytes.number(head + 28, 2) == 20;
        let data = head + 30 + name + bytes.number(head + 28, 2);
        let tail = data + compressed;
        assert_eq!(bytes.number(tail, 4), 0x0807_4b50);
        assert_eq!(bytes.number(tail + 4, 4), crc);
        let width = if has_large { 8 } else { 4 };
        assert_eq!(bytes.number(tail + 8, width), compressed, "{text}");
        assert_eq!(bytes.number(tail + 8 + width as u64, width), size, "{text}");
        next = tail + 8 + 2 * width as u64;
        let mut content = Vec::new();
        let mut inflate = DeflateDecoder::new(bytes.slice(data, compressed));
        inflate.read_to_end(&mut content).expect("it inflates");
        assert_eq!(inflate.total_in(), compressed, "{text}");
        let mut sum = Crc::new();
        sum.update(&content);
        assert_eq!((u64::from(sum.sum()), content.len() as u64), (crc, size));
        assert!(
            entries.insert(text, content).is_none(),
            "a name comes twice"
        );
        at += 46 + name + extra;
    }
    assert_eq!(at, list_end);
    entries
}
