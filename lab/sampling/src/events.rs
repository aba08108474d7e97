//! The kernel's events: one `cpu-clock` on each core of the system, with a ring of records.

use std::io;

use perf_event_open::config::{
    CallChain as ChainOf, Clock, Cpu, ExtraRecord, Opts, Priv, Proc, RecordIdFormat, RegsMask,
    SampleFormat, SampleOn, Size,
};
use perf_event_open::count::Counter;
use perf_event_open::event::sw::Software;
use perf_event_open::sample::Sampler;
use perf_event_open::sample::record::Record;
use perf_event_open::sample::record::sample::{Abi, CallChain, Sample};

use crate::error::Refused;

/// Frames that the kernel follows at most, by default (`kernel.perf_event_max_stack`).
pub(crate) const MOST_FRAMES: usize = 127;
/// The part of a user's stack that is copied. Stacks of asynchronous Rust are deep: 32 KiB cut half of them.
const COPY: u32 = 64 * 1024 - 8;
/// The time whose records a ring can hold. It is long, since the thread that drains the ring has the lowest priority.
const RING_SECONDS: f64 = 0.5;
/// Bytes of a sample with call chains alone, at most nearly.
const CHAIN_BYTES: f64 = 1500.0;
/// Bounds of a ring, as powers of two of pages: 64 KiB, 16 MiB.
const LEAST_RING: u8 = 4;
const LARGEST_RING: u8 = 12;
/// All rings together, in pages: 256 MiB.
const ALL_RINGS: usize = 1 << 16;

/// The registers that unwinding begins with, as bits of the kernel's `perf_regs.h`.
#[cfg(target_arch = "x86_64")]
const REGISTERS: u64 = 1 << 6 | 1 << 7 | 1 << 8;
#[cfg(target_arch = "aarch64")]
const REGISTERS: u64 = 1 << 29 | 1 << 30 | 1 << 31 | 1 << 32;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const REGISTERS: u64 = 0;

/// The settings of the kernel's events.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    /// A copy of the user's stack in each sample, with registers, in addition to the chain of frame pointers.
    pub(crate) copies: bool,
    /// The id of the control group in each sample.
    pub(crate) group: bool,
    /// Samples a second of a core.
    pub(crate) rate: f64,
}

/// One record.
#[derive(Debug)]
pub(crate) enum Event {
    Sample(Box<RawSample>),
    /// A process mapped a file for execution.
    Mapped {
        pid: i32,
        start: u64,
        length: u64,
        offset: u64,
        path: Vec<u8>,
    },
    Forked {
        pid: i32,
        tid: i32,
        parent: i32,
        parent_tid: i32,
    },
    /// A thread changed its name; a process does so when it begins another program.
    Named {
        pid: i32,
        tid: i32,
        name: Vec<u8>,
        exec: bool,
    },
    Exited {
        pid: i32,
        tid: i32,
    },
    Lost(u64),
    Throttled,
}

/// A sample as the kernel took it. The copy of the stack may hold secrets of the system: it is dropped with this.
#[derive(Debug)]
pub(crate) struct RawSample {
    /// On the kernel's monotonic clock.
    pub(crate) time_ns: u64,
    pub(crate) pid: i32,
    pub(crate) tid: i32,
    pub(crate) group: Option<u64>,
    pub(crate) kernel: Vec<u64>,
    pub(crate) user: Vec<u64>,
    /// In the order of their bits; `None` if the thread has no user code, or code of 32 bits.
    pub(crate) registers: Option<Vec<u64>>,
    pub(crate) stack: Vec<u8>,
}

/// The events of all cores. Closing them, as the end of this process does, leaves nothing in the kernel.
#[derive(Debug, Default)]
pub(crate) struct Events {
    cores: Vec<Core>,
}

struct Core {
    counter: Counter,
    sampler: Sampler,
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Core").finish_non_exhaustive()
    }
}

impl Events {
    /// Opens an event on each core, disabled.
    pub(crate) fn open(cores: &[u32], asked: Asked) -> Result<Self, Refused> {
        let largest = largest_ring(cores.len(), asked);
        let both = on_cores(cores, largest, |core| open(core, asked))?.into_iter();
        let cores = both.map(|(counter, sampler)| Core { counter, sampler });
        Ok(Self {
            cores: cores.collect(),
        })
    }

    pub(crate) fn enable(&self) -> io::Result<()> {
        self.cores.iter().try_for_each(|core| core.counter.enable())
    }

    pub(crate) fn disable(&self) -> io::Result<()> {
        self.cores
            .iter()
            .try_for_each(|core| core.counter.disable())
    }

    /// Sets the time between two samples of a core, and restarts it.
    pub(crate) fn period(&self, period_ns: u64) -> io::Result<()> {
        self.cores
            .iter()
            .try_for_each(|core| core.sampler.sample_on(period_ns.max(1)))
    }

    /// Removes and returns all records, in the order of time.
    pub(crate) fn drain(&self) -> Vec<Event> {
        let mut found = Vec::new();
        for core in &self.cores {
            let Some(records) = core.sampler.iter() else {
                continue;
            };
            found.extend(records.filter_map(|(_, record)| event(record)));
        }
        found.sort_by_key(|(time, _)| *time);
        found.into_iter().map(|(_, event)| event).collect()
    }
}

/// Opens an event on each core, with rings of at most this size.
pub(crate) fn on_cores(
    cores: &[u32],
    largest: u8,
    open: impl Fn(u32) -> io::Result<Counter>,
) -> Result<Vec<(Counter, Sampler)>, Refused> {
    let counters: io::Result<Vec<Counter>> = cores.iter().map(|core| open(*core)).collect();
    let counters = counters.map_err(Refused::open)?;
    let rings = rings(&counters, largest)?;
    Ok(counters.into_iter().zip(rings).collect())
}

fn open(core: u32, asked: Asked) -> io::Result<Counter> {
    let opts = Opts {
        exclude: Priv {
            idle: true,
            ..Priv::default()
        },
        sample_on: SampleOn::Count((1e9 / asked.rate.max(0.1)) as u64),
        sample_format: SampleFormat {
            cgroup: asked.group,
            ..stacks(asked.copies)
        },
        extra_record: ExtraRecord {
            task: true,
            comm: true,
            mmap: perf_event_open::config::Mmap {
                code: true,
                ..Default::default()
            },
            ..ExtraRecord::default()
        },
        ..stamped()
    };
    Counter::new(Software::CpuClock, (Proc::ALL, Cpu(core)), opts)
}

/// Records with thread and time.
pub(crate) fn stamped() -> Opts {
    Opts {
        record_id_all: true,
        record_id_format: RecordIdFormat {
            task: true,
            time: true,
            ..RecordIdFormat::default()
        },
        timer: Some(Clock::Monotonic),
        ..Opts::default()
    }
}

/// Samples with stacks; with copies of the users' stacks, if requested.
pub(crate) fn stacks(copies: bool) -> SampleFormat {
    SampleFormat {
        call_chain: Some(ChainOf {
            // Frame pointers cost little, and continue beyond the end of a copy.
            exclude_user: false,
            exclude_kernel: false,
            defer_user: false,
            // The kernel's maximum.
            max_stack_frames: 0,
        }),
        user_stack: copies.then_some(Size(COPY)),
        user_regs: copies.then_some(RegsMask(REGISTERS)),
        ..SampleFormat::default()
    }
}

/// The approximate maximum size of a sample with its stack, in bytes.
pub(crate) fn stack_bytes(copies: bool) -> f64 {
    CHAIN_BYTES + if copies { f64::from(COPY) } else { 0.0 }
}

/// The size of a ring that holds the records of half a second, as a power of two of pages.
fn largest_ring(cores: usize, asked: Asked) -> u8 {
    ring(cores, asked.rate * 1.5 * stack_bytes(asked.copies))
}

/// Returns the size of a ring for half a second at this rate, as a power of two of pages.
pub(crate) fn ring(cores: usize, bytes_a_second: f64) -> u8 {
    let bytes = bytes_a_second * RING_SECONDS;
    let pages = (bytes / procfs::page_size() as f64).max(1.0) as usize;
    let share = (ALL_RINGS / cores.max(1)).max(1);
    // At least 512 KiB, which the kernel allows every user.
    let power = pages.max(128).next_power_of_two().ilog2();
    (power.min(share.ilog2()) as u8).clamp(LEAST_RING, LARGEST_RING)
}

/// The largest rings that the kernel allows for all cores (`kernel.perf_event_mlock_kb`), all of one size.
fn rings(counters: &[Counter], largest: u8) -> Result<Vec<Sampler>, Refused> {
    let mut power = largest;
    loop {
        let rings = counters.iter().map(|counter| counter.sampler(power));
        match rings.collect::<io::Result<Vec<Sampler>>>() {
            Ok(rings) => return Ok(rings),
            Err(_) if power > LEAST_RING => power -= 1,
            Err(error) => return Err(Refused::NoMemory(error)),
        }
    }
}

fn event(record: Record) -> Option<(u64, Event)> {
    let time = |id: &Option<perf_event_open::sample::record::RecordId>| {
        id.as_ref().and_then(|id| id.time).unwrap_or(0)
    };
    Some(match record {
        Record::Sample(sample) => {
            let sample = raw(*sample)?;
            (sample.time_ns, Event::Sample(Box::new(sample)))
        }
        Record::Mmap(map) if map.executable => {
            let mapped = Event::Mapped {
                pid: map.task.pid as i32,
                start: map.addr,
                length: map.len,
                offset: map.page_offset,
                path: map.file.into_bytes(),
            };
            (time(&map.record_id), mapped)
        }
        Record::Fork(fork) => {
            let forked = Event::Forked {
                pid: fork.task.pid as i32,
                tid: fork.task.tid as i32,
                parent: fork.parent_task.pid as i32,
                parent_tid: fork.parent_task.tid as i32,
            };
            (time(&fork.record_id), forked)
        }
        Record::Comm(comm) => {
            let named = Event::Named {
                pid: comm.task.pid as i32,
                tid: comm.task.tid as i32,
                name: comm.comm.into_bytes(),
                exec: comm.by_execve,
            };
            (time(&comm.record_id), named)
        }
        Record::Exit(exit) => {
            let (pid, tid) = (exit.task.pid as i32, exit.task.tid as i32);
            (time(&exit.record_id), Event::Exited { pid, tid })
        }
        Record::LostRecords(lost) => (time(&lost.record_id), Event::Lost(lost.lost_records)),
        Record::Throttle(throttle) => (time(&throttle.record_id), Event::Throttled),
        _ => return None,
    })
}

pub(crate) fn raw(sample: Sample) -> Option<RawSample> {
    let task = sample.record_id.task?;
    let (mut kernel, mut user) = (Vec::new(), Vec::new());
    for chain in sample.call_chain.unwrap_or_default() {
        match chain {
            CallChain::Kernel(chain) => kernel.extend(chain),
            CallChain::User(chain) => user.extend(chain),
            _ => {}
        }
    }
    let registers = sample.user_regs;
    let registers = registers.and_then(|(values, abi)| (abi == Abi::_64).then_some(values));
    Some(RawSample {
        time_ns: sample.record_id.time?,
        pid: task.pid as i32,
        tid: task.tid as i32,
        group: sample.cgroup,
        kernel,
        user,
        registers,
        stack: sample.user_stack.unwrap_or_default(),
    })
}
