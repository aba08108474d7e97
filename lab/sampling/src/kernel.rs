//! Names of kernel functions from `/proc/kallsyms`.

use std::fs::File;

use crate::files;

/// Larger files are not read; a kernel with all its modules has 15 MB.
const LARGEST: u64 = 256 * 1024 * 1024;

/// The kernel's functions by address. Its addresses are used only to look up names.
#[derive(Debug, Default)]
pub(crate) struct Kernel {
    functions: Vec<(u64, Box<str>)>,
}

impl Kernel {
    /// Empty if this user may not read the addresses.
    pub(crate) fn read() -> Self {
        let file = File::open("/proc/kallsyms").ok();
        let text = file.and_then(|file| files::read(&file, LARGEST));
        Self::parse(&text.unwrap_or_default())
    }

    fn parse(text: &[u8]) -> Self {
        let mut functions = Vec::new();
        for line in text.split(|byte| *byte == b'\n') {
            let Ok(line) = std::str::from_utf8(line) else {
                continue;
            };
            let mut parts = line.split_ascii_whitespace();
            let (Some(address), Some(kind), Some(name)) =
                (parts.next(), parts.next(), parts.next())
            else {
                continue;
            };
            if !matches!(kind, "t" | "T" | "w" | "W") {
                continue;
            }
            match u64::from_str_radix(address, 16) {
                Ok(address) if address != 0 => functions.push((address, name.into())),
                _ => {}
            }
        }
        functions.sort();
        Self { functions }
    }

    pub(crate) fn name(&self, address: u64) -> Option<&str> {
        let after = self
            .functions
            .partition_point(|(start, _)| *start <= address);
        let (_, name) = self.functions.get(after.checked_sub(1)?)?;
        Some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_belong_to_the_function_before_them() {
        let text = b"ffffffff81000200 T second\nffffffff81000100 t first\nffffffff81000180 d data\nffffffffc0000000 t third\t[module]\n";
        let kernel = Kernel::parse(text);
        assert_eq!(kernel.name(0xffff_ffff_8100_0100), Some("first"));
        assert_eq!(kernel.name(0xffff_ffff_8100_01ff), Some("first"));
        assert_eq!(kernel.name(0xffff_ffff_8100_0200), Some("second"));
        assert_eq!(kernel.name(0xffff_ffff_c000_0010), Some("third"));
        assert_eq!(kernel.name(0xffff_ffff_8100_00ff), None);
    }

    #[test]
    fn hidden_addresses_name_nothing() {
        let kernel = Kernel::parse(b"0000000000000000 T first\n");
        assert_eq!(kernel.name(1), None);
    }
}
