//! The wake-up latency limit of cores. If it is shorter than waking from a sleep takes, cores don't sleep: it costs
//! power, and saves each response the time that a core takes to wake.
//!
//! The kernel applies the smallest of all requested limits, as long as the requesting process has the file open:
//! nothing needs to be restored, however this process ends.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileTypeExt;

use lab_study::CPU_LATENCY;

/// The driver that selects sleep states and applies the limit; `none` if there is only one state.
const DRIVER: &str = "/sys/devices/system/cpu/cpuidle/current_driver";

/// A requested limit. Dropped, the request ends.
#[derive(Debug)]
pub(crate) struct Latency {
    _open: File,
}

impl Latency {
    /// Requests so many microseconds.
    pub(crate) fn ask(value: &str) -> io::Result<Self> {
        let microseconds: u32 = value.parse().map_err(io::Error::other)?;
        let microseconds = i32::try_from(microseconds).map_err(io::Error::other)?;
        let mut file = OpenOptions::new().write(true).open(CPU_LATENCY)?;
        // A native-endian integer; a text would be read as a hexadecimal one.
        file.write_all(&microseconds.to_ne_bytes())?;
        Ok(Self { _open: file })
    }
}

/// The limit in force, microseconds.
pub(crate) fn in_force() -> io::Result<String> {
    let mut bytes = [0; size_of::<i32>()];
    File::open(CPU_LATENCY)?.read_exact(&mut bytes)?;
    Ok(i32::from_ne_bytes(bytes).to_string())
}

/// Checks that the kernel applies a limit; not whether this process may request one.
pub(crate) fn usable() -> Result<(), String> {
    let is_kernels = fs::metadata(CPU_LATENCY).is_ok_and(|file| file.file_type().is_char_device());
    if !is_kernels {
        return Err(format!("{CPU_LATENCY} is no device of the kernel's"));
    }
    match fs::read_to_string(DRIVER).as_deref().map(str::trim) {
        Ok("none") | Err(_) => Err(format!(
            "nothing would come of it: this kernel has no driver that chooses how cores sleep ({DRIVER})"
        )),
        Ok(_) => Ok(()),
    }
}

/// A value that takes effect when requested, unless another process requests less, and that no other process requests.
/// `None`, with a message, if no request is possible, or the machine already has the smallest limit.
#[cfg(test)]
pub(crate) fn odd(value: i32) -> Option<i32> {
    let before = in_force().map(|before| before.parse::<i32>().unwrap());
    let odd = before.as_ref().map_or(-1, |before| value.min(before - 1));
    if odd < 0 {
        eprintln!("SKIPPED: {CPU_LATENCY} is {before:?} here");
    }
    (odd >= 0).then_some(odd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_as_long_as_it_is_had() {
        let Some(odd) = odd(17_031) else { return };
        let asked = Latency::ask(&odd.to_string()).unwrap();
        assert!(in_force().unwrap().parse::<i32>().unwrap() <= odd);
        drop(asked);
        assert_ne!(in_force().unwrap(), odd.to_string());
        for wrong in ["soon", "-1", "4000000000"] {
            assert!(Latency::ask(wrong).is_err(), "{wrong}");
        }
    }
}
