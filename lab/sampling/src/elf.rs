//! Data of an executable for unwinding and naming: segments, unwind tables, build id. Files may be hostile: every size
//! has a bound, and the library checks every offset.

use std::ops::Range;
use std::sync::Arc;

use gimli::{BaseAddresses, EhFrame, EhFrameHdr, LittleEndian, UnwindSection};
use object::elf::{FileHeader64, PF_X, PT_LOAD};
use object::read::elf::{ElfFile, ElfFile64, ProgramHeader};
use object::{LittleEndian as Little, Object, ObjectSection, ReadRef};

/// Larger tables are not read.
const LARGEST_SECTION: u64 = 256 * 1024 * 1024;
/// More segments than this has no executable.
const MOST_SEGMENTS: usize = 4096;

/// A section of the file.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    pub(crate) addresses: Range<u64>,
    pub(crate) data: Arc<[u8]>,
}

/// An executable or a library.
#[derive(Clone, Debug, Default)]
pub struct Elf {
    code: Vec<Segment>,
    pub(crate) text: Option<Range<u64>>,
    pub(crate) got: Option<Range<u64>>,
    pub(crate) eh_frame: Option<Section>,
    pub(crate) eh_frame_hdr: Option<Section>,
    pub(crate) build_id: String,
}

/// A part of the file that is mapped for execution.
#[derive(Clone, Copy, Debug)]
struct Segment {
    offset: u64,
    size: u64,
    address: u64,
}

impl Elf {
    /// Reads a file of 64 bits, low byte first; `None` for anything else.
    pub fn read<'data>(data: impl ReadRef<'data>) -> Option<Self> {
        let file: ElfFile64<'data, Little, _> = ElfFile::parse(data).ok()?;
        let headers = file.elf_program_headers().iter().take(MOST_SEGMENTS);
        // By their flags: linkers put parts of several segments on one page, so a page doesn't identify its segment.
        let code =
            headers.filter(|one| one.p_type(Little) == PT_LOAD && one.p_flags(Little) & PF_X != 0);
        let code = code.map(|one| Segment {
            offset: one.p_offset(Little),
            size: one.p_filesz(Little),
            address: one.p_vaddr(Little),
        });
        let build_id = file.build_id().ok().flatten().unwrap_or_default();
        Some(Self {
            code: code.collect(),
            text: range(&file, ".text"),
            got: range(&file, ".got"),
            eh_frame: section(&file, ".eh_frame"),
            eh_frame_hdr: section(&file, ".eh_frame_hdr"),
            build_id: build_id
                .iter()
                .take(64)
                .map(|byte| format!("{byte:02x}"))
                .collect(),
        })
    }

    /// The address, as the file has it, of the first byte of a mapping that begins at this place of the file. Mappings
    /// begin at pages, before the segment's first byte.
    pub fn start(&self, offset: u64, length: u64) -> Option<u64> {
        let end = offset.saturating_add(length);
        let overlaps =
            |one: &&Segment| one.offset < end && offset < one.offset.saturating_add(one.size);
        let segment = self.code.iter().find(overlaps)?;
        Some(
            segment
                .address
                .wrapping_add(offset.wrapping_sub(segment.offset)),
        )
    }

    /// The start of the function that holds an address, by the unwind table.
    pub fn function(&self, address: u64) -> Option<u64> {
        let (frames, header) = (self.eh_frame.as_ref()?, self.eh_frame_hdr.as_ref()?);
        let bases = BaseAddresses::default()
            .set_eh_frame(frames.addresses.start)
            .set_eh_frame_hdr(header.addresses.start)
            .set_text(self.text.as_ref().map_or(0, |text| text.start))
            .set_got(self.got.as_ref().map_or(0, |got| got.start));
        let parsed = EhFrameHdr::new(&header.data, LittleEndian)
            .parse(&bases, 8)
            .ok()?;
        let section = EhFrame::new(&frames.data, LittleEndian);
        let found =
            parsed
                .table()?
                .fde_for_address(&section, &bases, address, EhFrame::cie_from_offset);
        Some(found.ok()?.initial_address())
    }
}

type File<'data, R> = ElfFile<'data, FileHeader64<Little>, R>;

fn range<'data, R: ReadRef<'data>>(file: &File<'data, R>, name: &str) -> Option<Range<u64>> {
    let section = file.section_by_name(name)?;
    Some(section.address()..section.address().checked_add(section.size())?)
}

fn section<'data, R: ReadRef<'data>>(file: &File<'data, R>, name: &str) -> Option<Section> {
    let section = file.section_by_name(name)?;
    if section.size() > LARGEST_SECTION {
        return None;
    }
    Some(Section {
        addresses: range(file, name)?,
        data: Arc::from(section.data().ok()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_this_program() {
        let bytes = std::fs::read("/proc/self/exe").unwrap();
        let elf = Elf::read(bytes.as_slice()).unwrap();
        let text = elf.text.clone().unwrap();
        let segment = elf
            .code
            .iter()
            .find(|one| one.address <= text.start)
            .unwrap();
        let offset = text.start - segment.address + segment.offset;
        assert_eq!(elf.start(offset, 1), Some(text.start));
        let frames = elf.function(text.start + text.end.saturating_sub(text.start) / 2);
        assert!(frames.is_some_and(|start| text.contains(&start)));
        assert_eq!(elf.start(u64::MAX, 1), None);
    }

    #[test]
    fn broken_files_are_refused() {
        let mut bytes = std::fs::read("/proc/self/exe").unwrap();
        bytes.truncate(4096);
        assert!(Elf::read(&bytes[..0]).is_none());
        assert!(Elf::read(b"#!/bin/sh\n".as_slice()).is_none());
        // Sections beyond the end.
        let cut = Elf::read(bytes.as_slice());
        assert!(cut.is_none_or(|elf| elf.eh_frame.is_none() && elf.function(4096).is_none()));
    }
}
