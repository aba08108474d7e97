//! Follows copies of stacks by the unwind tables of the files, and by frame pointers where there are none. No other
//! module unwinds stacks.

use std::ops::Range;
use std::sync::Arc;

use framehop::{
    CacheNative, ExplicitModuleSectionInfo, Module, UnwindRegsNative, Unwinder as _, UnwinderNative,
};

use crate::elf::{Elf, Section};
use crate::events::MOST_FRAMES;

/// Registers and stack of a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopped<'a> {
    /// In the order of their bits.
    pub(crate) registers: &'a [u64],
    /// From the stack pointer on.
    pub(crate) stack: &'a [u8],
}

/// The code of one process.
pub(crate) struct Unwinder {
    unwinder: UnwinderNative<Arc<[u8]>, framehop::MayAllocateDuringUnwind>,
}

/// A cache of unwind rules, shared by all processes.
#[derive(Default)]
pub(crate) struct Rules {
    cache: CacheNative<framehop::MayAllocateDuringUnwind>,
}

/// Addresses from the innermost on, return addresses less one, and whether they reach the start of the thread.
pub(crate) type Followed = (Vec<u64>, bool);

impl Unwinder {
    pub(crate) fn new() -> Self {
        Self {
            unwinder: UnwinderNative::new(),
        }
    }

    /// Adds a file that is mapped at these addresses; `base` is where its address 0 would be.
    pub(crate) fn add(&mut self, addresses: Range<u64>, base: u64, elf: &Elf) {
        let data = |section: &Option<Section>| section.as_ref().map(|one| Arc::clone(&one.data));
        let range = |section: &Option<Section>| section.as_ref().map(|one| one.addresses.clone());
        let sections = ExplicitModuleSectionInfo {
            base_svma: 0,
            text_svma: elf.text.clone(),
            got_svma: elf.got.clone(),
            eh_frame_svma: range(&elf.eh_frame),
            eh_frame: data(&elf.eh_frame),
            eh_frame_hdr_svma: range(&elf.eh_frame_hdr),
            eh_frame_hdr: data(&elf.eh_frame_hdr),
            ..ExplicitModuleSectionInfo::default()
        };
        self.unwinder
            .add_module(Module::new(String::new(), addresses, base, sections));
    }

    pub(crate) fn follow(&self, stopped: Stopped<'_>, rules: &mut Rules) -> Followed {
        let Some((counter, pointer, registers)) = registers(stopped.registers) else {
            return (Vec::new(), false);
        };
        let mut read = |address: u64| {
            let at = usize::try_from(address.wrapping_sub(pointer)).map_err(|_| ())?;
            let end = at.checked_add(8).ok_or(())?;
            let bytes = stopped.stack.get(at..end).ok_or(())?;
            bytes.try_into().map(u64::from_le_bytes).map_err(|_| ())
        };
        let mut frames = self
            .unwinder
            .iter_frames(counter, registers, &mut rules.cache, &mut read);
        let mut found = Vec::new();
        while found.len() < MOST_FRAMES {
            match frames.next() {
                Ok(Some(frame)) => found.push(frame.address_for_lookup()),
                Ok(None) => return (found, true),
                Err(_) => return (found, false),
            }
        }
        (found, false)
    }
}

/// Program counter, stack pointer, and the initial registers of unwinding.
#[cfg(target_arch = "x86_64")]
fn registers(values: &[u64]) -> Option<(u64, u64, UnwindRegsNative)> {
    let [frame, stack, counter] = values.try_into().ok()?;
    Some((counter, stack, UnwindRegsNative::new(counter, stack, frame)))
}

/// Program counter, stack pointer, and the initial registers of unwinding.
#[cfg(target_arch = "aarch64")]
fn registers(values: &[u64]) -> Option<(u64, u64, UnwindRegsNative)> {
    let [frame, link, stack, counter] = values.try_into().ok()?;
    Some((counter, stack, UnwindRegsNative::new(link, stack, frame)))
}
