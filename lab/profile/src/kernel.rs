//! CPU time of the kernel, by system call or interrupt.
//!
//! A timer that samples can't interrupt code that runs with interrupts off: its time is counted where they are turned on
//! again. So the kernel's time is summed up by system call, not by kernel function.

use crate::model::{Location, Mapping, Profile};

/// Beginnings of the names of functions that carry out system calls.
const CALLS: [&str; 5] = [
    "__x64_sys_",
    "__ia32_sys_",
    "__arm64_sys_",
    "__se_sys_",
    "__do_sys_",
];

/// Parts of the names of the kernel's other entry functions, with the name of the reason.
const ENTRIES: [(&str, &str); 6] = [
    ("page_fault", "page faults"),
    ("do_mem_abort", "page faults"),
    ("sysvec_", "interrupts"),
    ("common_interrupt", "interrupts"),
    ("do_softirq", "interrupts"),
    ("exit_to_user_mode", "return to the program"),
];

impl Profile {
    /// Returns true if a location is in the kernel.
    pub(crate) fn is_of_kernel(&self, location: usize) -> bool {
        let mapping = |mapping: usize| &self.mappings[mapping];
        let Location { mapping: at, .. } = self.locations[location];
        at.map(mapping).is_some_and(Mapping::is_kernel)
    }

    /// The system call or interrupt of the kernel's part of a stack, the innermost location first: `[kernel] futex`.
    pub(crate) fn kernel_entry(&self, stack: &[usize]) -> String {
        let lines = stack
            .iter()
            .flat_map(|location| &self.locations[*location].lines);
        let names: Vec<&str> = lines
            .map(|line| self.functions[line.function].name.as_str())
            .collect();
        let entry = names.iter().rev().find_map(|name| entry(name));
        match entry {
            Some(entry) => format!("[kernel] {entry}"),
            None => Self::KERNEL.to_owned(),
        }
    }
}

impl Mapping {
    fn is_kernel(&self) -> bool {
        self.file.starts_with("[kernel")
    }
}

/// The system call that a function of the kernel implements.
pub(crate) fn call(name: &str) -> Option<&str> {
    CALLS.iter().find_map(|begin| name.strip_prefix(begin))
}

fn entry(name: &str) -> Option<&str> {
    call(name).or_else(|| {
        let entry = ENTRIES.iter().find(|(part, _)| name.contains(part));
        entry.map(|(_, what)| *what)
    })
}

#[cfg(test)]
mod tests {
    use super::entry;

    #[test]
    fn functions_name_system_calls_and_other_entries() {
        for (name, what) in [
            ("__x64_sys_epoll_wait", Some("epoll_wait")),
            ("__arm64_sys_futex", Some("futex")),
            ("asm_exc_page_fault", Some("page faults")),
            ("asm_sysvec_apic_timer_interrupt", Some("interrupts")),
            ("syscall_exit_to_user_mode", Some("return to the program")),
            ("do_syscall_64", None),
            ("schedule", None),
        ] {
            assert_eq!(entry(name), what, "{name}");
        }
    }
}
