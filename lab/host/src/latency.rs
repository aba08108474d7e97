//! How long cores may take to wake. Where that is shorter than waking from a sleep takes, they don't sleep: it costs
//! power, and spares each answer the time that a core takes to wake.
//!
//! The kernel goes by the shortest that anybody asks for, as long as whoever asks has the file open: nothing is to
//! be put back, whatever becomes of this process.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileTypeExt;

use lab_study::CPU_LATENCY;

/// The driver that chooses how cores sleep, and heeds what is asked for; `none` where they all sleep alike.
const DRIVER: &str = "/sys/devices/system/cpu/cpuidle/current_driver";

/// What was asked for. Dropped, it is no longer.
#[derive(Debug)]
pub(crate) struct Latency {
    _open: File,
}

impl Latency {
    /// Asks for so many microseconds.
    pub(crate) fn ask(value: &str) -> io::Result<Self> {
        let microseconds: u32 = value.parse().map_err(io::Error::other)?;
        let microseconds = i32::try_from(microseconds).map_err(io::Error::other)?;
        let mut file = OpenOptions::new().write(true).open(CPU_LATENCY)?;
        // A whole number as the machine has it; a text would be read as a hexadecimal one.
        file.write_all(&microseconds.to_ne_bytes())?;
        Ok(Self { _open: file })
    }
}

/// The microseconds that the kernel goes by.
pub(crate) fn in_force() -> io::Result<String> {
    let mut bytes = [0; size_of::<i32>()];
    File::open(CPU_LATENCY)?.read_exact(&mut bytes)?;
    Ok(i32::from_ne_bytes(bytes).to_string())
}

/// Whether the kernel heeds what is asked for; whether this process may ask is left open.
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

/// A value that is in force once it is asked for, unless somebody asks for less, and that nobody else asks for.
/// `None`, with a message, where nothing can be asked for, or the machine is tuned for the least.
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
