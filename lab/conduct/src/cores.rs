//! Which cores the generator and the system get. It knows neither of them.
//!
//! A quarter of the cores, rounded up, drives; the rest carries. On one core both share it, and
//! the archive says so.

use lab_archive::Pinning;
use nix::errno::Errno;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// Cores that this process may use, in order.
pub(crate) fn allowed() -> Result<Vec<u32>, Errno> {
    let set = sched_getaffinity(Pid::from_raw(0))?;
    let cores = (0..CpuSet::count()).filter(|core| set.is_set(*core).unwrap_or(false));
    Ok(cores.filter_map(|core| u32::try_from(core).ok()).collect())
}

/// Shares the cores out.
pub(crate) fn share(cores: &[u32]) -> Pinning {
    if cores.len() < 2 {
        return Pinning {
            generator: cores.to_vec(),
            system: cores.to_vec(),
            shared: true,
        };
    }
    let (generator, system) = cores.split_at(cores.len().div_ceil(4));
    Pinning {
        generator: generator.to_vec(),
        system: system.to_vec(),
        shared: false,
    }
}

/// The calling thread on some cores until this is dropped. Threads and processes that it starts
/// meanwhile begin there; that is how a child is pinned before its first instruction.
#[derive(Debug)]
pub(crate) struct Pinned {
    before: CpuSet,
}

impl Pinned {
    pub(crate) fn to(cores: &[u32]) -> Result<Self, Errno> {
        let this_thread = Pid::from_raw(0);
        let before = sched_getaffinity(this_thread)?;
        let mut set = CpuSet::new();
        for core in cores {
            set.set(usize::try_from(*core).map_err(|_| Errno::EINVAL)?)?;
        }
        sched_setaffinity(this_thread, &set)?;
        Ok(Self { before })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // The cores it had a moment ago; at worst the thread stays where it is.
        let _ = sched_setaffinity(Pid::from_raw(0), &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(cores: &[u32]) -> (Vec<u32>, Vec<u32>, bool) {
        let pinning = share(cores);
        (pinning.generator, pinning.system, pinning.shared)
    }

    #[test]
    fn a_quarter_drives_and_the_rest_carries() {
        assert_eq!(shared(&[0, 1]), (vec![0], vec![1], false));
        assert_eq!(shared(&[2, 3, 5, 7]), (vec![2], vec![3, 5, 7], false));
        assert_eq!(shared(&[0, 1, 2, 3, 4]), (vec![0, 1], vec![2, 3, 4], false));
        assert_eq!(shared(&(0..16).collect::<Vec<_>>()).0, [0, 1, 2, 3]);
        assert_eq!(shared(&[4]), (vec![4], vec![4], true));
    }

    #[test]
    fn a_pinned_thread_gets_its_cores_back() {
        let before = allowed().unwrap();
        let last = *before.last().unwrap();
        let pinned = Pinned::to(&[last]).unwrap();
        assert_eq!(allowed().unwrap(), [last]);
        drop(pinned);
        assert_eq!(allowed().unwrap(), before);
    }

    #[test]
    fn a_core_that_is_not_there_is_an_error() {
        assert!(Pinned::to(&[u32::MAX]).is_err());
        assert!(Pinned::to(&[]).is_err());
    }
}
