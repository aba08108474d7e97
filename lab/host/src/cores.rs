//! Assigns cores to the generator and the system. It knows neither of them.
//!
//! The generator gets a quarter of the cores, rounded up; the system gets the rest. A study may set how many or which
//! cores the system has; the generator's are the same in all its trials, and the system's are others unless it needs
//! all. If both share a core, the archive records it.

use lab_archive::Pinning;
use lab_study::Cpus;
use lab_study::plan::Plan;
use nix::errno::Errno;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// Cores that this process may use, in order.
pub fn allowed() -> Result<Vec<u32>, Errno> {
    let set = sched_getaffinity(Pid::from_raw(0))?;
    let cores = (0..CpuSet::count()).filter(|core| set.is_set(*core).unwrap_or(false));
    Ok(cores.filter_map(|core| u32::try_from(core).ok()).collect())
}

/// The division of cores in a run.
#[derive(Debug)]
pub struct Allotment {
    generator: Vec<u32>,
    /// The system's cores, those shared with the generator last.
    pool: Vec<u32>,
}

impl Allotment {
    /// Divides `cores` so that every trial of the plan has what it requires.
    pub fn new(cores: &[u32], plan: &Plan) -> Self {
        let wants: Vec<&Cpus> = wants(plan).map(|(_, cpus)| cpus).collect();
        let listed = |core: &u32| {
            let has = |cpus: &&Cpus| matches!(cpus, Cpus::List(list) if list.contains(core));
            wants.iter().any(has)
        };
        let most = wants.iter().map(|cpus| match cpus {
            Cpus::Count(count) => *count as usize,
            Cpus::List(_) => 0,
        });
        let room = cores.len().saturating_sub(most.max().unwrap_or(0));
        // A system that needs all of them shares the generator's.
        let few = match room {
            0 => cores.len().div_ceil(4),
            room => cores.len().div_ceil(4).min(room),
        };
        let free: Vec<u32> = cores.iter().copied().filter(|core| !listed(core)).collect();
        let from = if free.is_empty() { cores } else { &free };
        let generator: Vec<u32> = from.iter().copied().take(few).collect();
        let others = cores.iter().filter(|core| !generator.contains(core));
        let pool = others.chain(&generator).copied().collect();
        Self { generator, pool }
    }

    /// The cores of both sides in a trial.
    pub fn pinning(&self, cpus: Option<&Cpus>) -> Pinning {
        let own = self.pool.len() - self.generator.len();
        let take = |count: usize| self.pool.iter().copied().take(count).collect();
        let mut system: Vec<u32> = match cpus {
            Some(Cpus::List(list)) => list.clone(),
            Some(Cpus::Count(count)) => take(*count as usize),
            None if own == 0 => take(self.pool.len()),
            None => take(own),
        };
        system.sort_unstable();
        Pinning {
            shared: system.iter().any(|core| self.generator.contains(core)),
            generator: self.generator.clone(),
            system,
        }
    }
}

/// The halves of `cores` for the two trials of a duet, left and right. `None` for a single core.
pub fn halves(cores: &[u32], siblings: &dyn Fn(u32) -> Vec<u32>) -> Option<[Pinning; 2]> {
    split(cores, siblings).map(|both| both.map(|cores| half_of(&cores)))
}

/// The cores of both halves: as many on each side, and with two physical cores or more, none of them on both.
/// `siblings` are the threads of a core's physical one. `None` for a single core.
pub fn split(cores: &[u32], siblings: &dyn Fn(u32) -> Vec<u32>) -> Option<[Vec<u32>; 2]> {
    let mut physical: Vec<Vec<u32>> = Vec::new();
    for core in cores {
        let threads = siblings(*core);
        let same = |group: &&mut Vec<u32>| group.iter().any(|one| threads.contains(one));
        match physical.iter_mut().find(same) {
            Some(group) => group.push(*core),
            None => physical.push(vec![*core]),
        }
    }
    if let [only] = &physical[..] {
        physical = only.iter().map(|thread| vec![*thread]).collect();
    }
    let half = physical.len() / 2;
    let (left, right) = (physical[..half].concat(), physical[half..half * 2].concat());
    let alike = left.len().min(right.len());
    (alike > 0).then(|| [left, right].map(|half| half[..alike].to_vec()))
}

/// The generator gets a quarter of a half, too; a single core is shared.
fn half_of(cores: &[u32]) -> Pinning {
    let (generator, system) = cores.split_at(cores.len().div_ceil(4));
    let shared = system.is_empty();
    Pinning {
        generator: generator.to_vec(),
        system: if shared { generator } else { system }.to_vec(),
        shared,
    }
}

/// All cores of a duet, and the cores of both its trials unless they are kept apart.
pub fn both([left, right]: &[Pinning; 2]) -> Pinning {
    Pinning {
        generator: [&left.generator[..], &right.generator].concat(),
        system: [&left.system[..], &right.system].concat(),
        shared: left.shared || right.shared,
    }
}

/// The threads of a core's physical one, including itself; only itself if the kernel doesn't report them.
pub fn siblings(core: u32) -> Vec<u32> {
    let path = format!("/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?)
    };
    let listed = text.trim().split(',').filter_map(range).flatten();
    listed.chain([core]).collect()
}

fn wants(plan: &Plan) -> impl Iterator<Item = (u32, &Cpus)> {
    plan.every_trial()
        .filter_map(|trial| Some((trial.id, trial.host.cpus.as_ref()?)))
}

/// Trials that require missing cores; a sentence for the first one of each kind.
pub fn check(plan: &Plan, cores: &[u32]) -> Vec<String> {
    let mut problems: Vec<(&Cpus, String)> = Vec::new();
    for (id, cpus) in wants(plan) {
        let missing = match cpus {
            Cpus::Count(count) if *count as usize > cores.len() => format!("{count} cores"),
            Cpus::List(list) => match list.iter().find(|core| !cores.contains(core)) {
                Some(core) => format!("core {core}"),
                None => continue,
            },
            Cpus::Count(_) => continue,
        };
        if problems.iter().all(|(other, _)| *other != cpus) {
            let there = words(cores);
            let said = format!(
                "trial {id} wants {missing} for the system, and this process may use {there}"
            );
            problems.push((cpus, said));
        }
    }
    let mut said: Vec<String> = problems.into_iter().map(|(_, said)| said).collect();
    if plan.question.duet && halves(cores, &siblings).is_none() {
        let there = words(cores);
        said.push(format!(
            "a duet needs two cores, and this process may use {there}"
        ));
    }
    said
}

/// A study's choice of cores, as `2 cores` or `cores 0, 1`.
pub fn wanted(cpus: &Cpus) -> String {
    match cpus {
        Cpus::Count(1) => "1 core".to_owned(),
        Cpus::Count(count) => format!("{count} cores"),
        Cpus::List(list) => words(list),
    }
}

/// `core 1`, `cores 0, 1`.
pub fn words(cores: &[u32]) -> String {
    let list: Vec<String> = cores.iter().map(u32::to_string).collect();
    let word = if cores.len() == 1 { "core" } else { "cores" };
    format!("{word} {}", list.join(", "))
}

/// Pins the calling thread until this is dropped. Threads and processes that it starts meanwhile inherit the cores;
/// that is how a child is pinned before its first instruction.
#[derive(Debug)]
pub struct Pinned {
    before: CpuSet,
}

impl Pinned {
    /// Pins the calling thread to these cores.
    ///
    /// # Errors
    /// The kernel's, for a core that doesn't exist or is not available to this process.
    pub fn to(cores: &[u32]) -> Result<Self, Errno> {
        let this_thread = Pid::from_raw(0);
        let before = sched_getaffinity(this_thread)?;
        sched_setaffinity(this_thread, &set_of(cores)?)?;
        Ok(Self { before })
    }
}

/// Most scans for threads that are not on their cores.
const MOST_LOOKS: usize = 10;

/// Pins all threads of a process to these cores. A new thread starts on its parent's cores, so the scan repeats until
/// all are there.
///
/// # Errors
/// The kernel's, for a core that doesn't exist or a process of another user.
pub fn put_on(process: u32, cores: &[u32]) -> Result<(), Errno> {
    let wanted = set_of(cores)?;
    let ended = |errno: Errno| match errno {
        Errno::ESRCH => Ok(false),
        errno => Err(errno),
    };
    let put = |thread: Pid| {
        if sched_getaffinity(thread)? == wanted {
            return Ok(false);
        }
        sched_setaffinity(thread, &wanted).map(|()| true)
    };
    for _ in 0..MOST_LOOKS {
        let mut moved = false;
        for thread in threads(process) {
            moved |= put(thread).or_else(ended)?;
        }
        if !moved {
            break;
        }
    }
    Ok(())
}

fn threads(process: u32) -> impl Iterator<Item = Pid> {
    let folder = std::fs::read_dir(format!("/proc/{process}/task"));
    let entries = folder.into_iter().flatten().flatten();
    entries.filter_map(|entry| Some(Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)))
}

fn set_of(cores: &[u32]) -> Result<CpuSet, Errno> {
    let mut set = CpuSet::new();
    for core in cores {
        set.set(usize::try_from(*core).map_err(|_| Errno::EINVAL)?)?;
    }
    Ok(set)
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // The cores it had before; at worst the thread stays where it is.
        let _ = sched_setaffinity(Pid::from_raw(0), &self.before);
    }
}

#[cfg(test)]
mod tests {
    use lab_study::plan::{LoadSpec, Trial};
    use lab_study::{HostSpec, SystemSpec};

    use super::*;

    fn plan(wants: &[Cpus]) -> Plan {
        let system = SystemSpec::Attach(Default::default());
        let trial = |(id, cpus): (u32, &Cpus)| Trial {
            host: HostSpec {
                cpus: Some(cpus.clone()),
                ..HostSpec::default()
            },
            ..Trial::of(id, system.clone(), LoadSpec::of_users(1, 1, 1))
        };
        Plan::of("s", 1, (1..).zip(wants).map(trial).collect())
    }

    fn shared(cores: &[u32]) -> (Vec<u32>, Vec<u32>, bool) {
        let pinning = Allotment::new(cores, &plan(&[])).pinning(None);
        (pinning.generator, pinning.system, pinning.shared)
    }

    #[track_caller]
    fn check_each(cores: &[u32], wants: &[Cpus], generator: &[u32], systems: &[(&[u32], bool)]) {
        let allotment = Allotment::new(cores, &plan(wants));
        for (cpus, (system, shared)) in wants.iter().zip(systems) {
            let pinning = allotment.pinning(Some(cpus));
            let got = (&pinning.generator[..], &pinning.system[..], pinning.shared);
            assert_eq!(got, (generator, *system, *shared), "{cpus:?}");
        }
    }

    #[test]
    fn the_generator_stays_where_it_is_whatever_the_system_has() {
        let all: Vec<u32> = (0..8).collect();
        let count = |n: u32| Cpus::Count(n);
        check_each(
            &all,
            &[count(1), count(4)],
            &[0, 1],
            &[(&[2], false), (&[2, 3, 4, 5], false)],
        );
        // Seven of eight leave one for the generator; eight of eight leave none.
        check_each(
            &all,
            &[count(1), count(7)],
            &[0],
            &[(&[1], false), (&[1, 2, 3, 4, 5, 6, 7], false)],
        );
        check_each(
            &[0, 1],
            &[count(1), count(2)],
            &[0],
            &[(&[1], false), (&[0, 1], true)],
        );
        let list = |cores: &[u32]| Cpus::List(cores.to_vec());
        check_each(
            &all,
            &[list(&[0, 1]), list(&[0, 3])],
            &[2, 4],
            &[(&[0, 1], false), (&[0, 3], false)],
        );
        check_each(&[0, 1], &[list(&[0, 1])], &[0], &[(&[0, 1], true)]);
    }

    #[test]
    fn cores_that_are_not_there_are_said() {
        let wants = [
            Cpus::Count(2),
            Cpus::Count(3),
            Cpus::List(vec![0, 5]),
            Cpus::Count(3),
        ];
        let said = check(&plan(&wants), &[0, 1]);
        let expected = [
            "trial 2 wants 3 cores for the system, and this process may use cores 0, 1",
            "trial 3 wants core 5 for the system, and this process may use cores 0, 1",
        ];
        assert_eq!(said, expected);
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
    fn halves_are_alike_and_share_no_physical_core() {
        let check = |cores: &[u32], threads: &[&[u32]], expected: [(&[u32], &[u32]); 2]| {
            let siblings = |core: u32| {
                let group = threads.iter().find(|group| group.contains(&core));
                group.map_or(vec![core], |group| group.to_vec())
            };
            let found = halves(cores, &siblings).unwrap();
            let found = found
                .each_ref()
                .map(|half| (&half.generator[..], &half.system[..]));
            assert_eq!(found, expected, "{cores:?}");
        };
        check(&[0, 1], &[], [(&[0], &[0]), (&[1], &[1])]);
        // Two threads of one core are all.
        check(&[0, 1], &[&[0, 1]], [(&[0], &[0]), (&[1], &[1])]);
        check(&[0, 1, 2, 3], &[], [(&[0], &[1]), (&[2], &[3])]);
        let threads: [&[u32]; 2] = [&[0, 2], &[1, 3]];
        check(&[0, 1, 2, 3], &threads, [(&[0], &[2]), (&[1], &[3])]);
        // The third of three is unused.
        check(&[3, 4, 5], &[], [(&[3], &[3]), (&[4], &[4])]);
        let eight = [0, 1, 2, 3, 4, 5, 6, 7];
        check(&eight, &[], [(&[0], &[1, 2, 3]), (&[4], &[5, 6, 7])]);
        assert_eq!(halves(&[4], &|core| vec![core]), None);
        assert_eq!(halves(&[], &|core| vec![core]), None);
        let all = both(&halves(&[0, 1], &|core| vec![core]).unwrap());
        assert_eq!(
            (&all.generator[..], &all.system[..]),
            (&[0, 1][..], &[0, 1][..])
        );
        assert!(all.shared && siblings(0).contains(&0));
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
    fn a_process_is_put_on_other_cores_and_back() {
        let cores = allowed().unwrap();
        let mut shell = std::process::Command::new("sh")
            .args(["-c", "read line"])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        put_on(shell.id(), &cores[..1]).unwrap();
        let of_shell = Pid::from_raw(i32::try_from(shell.id()).unwrap());
        let one = sched_getaffinity(of_shell).unwrap();
        assert_eq!(one, set_of(&cores[..1]).unwrap());
        put_on(shell.id(), &cores).unwrap();
        assert_eq!(
            sched_getaffinity(of_shell).unwrap(),
            set_of(&cores).unwrap()
        );
        assert!(put_on(shell.id(), &[]).is_err());
        shell.kill().unwrap();
        shell.wait().unwrap();
        // An ended process has no thread on other cores.
        assert_eq!(put_on(shell.id(), &cores), Ok(()));
    }

    #[test]
    fn a_core_that_is_not_there_is_an_error() {
        assert!(Pinned::to(&[u32::MAX]).is_err());
        assert!(Pinned::to(&[]).is_err());
    }
}
