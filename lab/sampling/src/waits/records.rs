//! The kernel's records of switches: on each core of the system all switches, the stacks of some of them, and the stacks
//! of some of the threads that wake others.

use std::io;

use perf_event_open::config::{Cpu, ExtraRecord, Opts, Proc, SampleFormat, SampleOn};
use perf_event_open::count::Counter;
use perf_event_open::event::sw::Software;
use perf_event_open::event::tp::Tracepoint;
use perf_event_open::sample::Sampler;
use perf_event_open::sample::record::Record;
use perf_event_open::sample::record::ctx::Switch;

use super::pace::most_stacks;
use crate::error::Refused;
use crate::events::{RawSample, on_cores, raw, ring, stack_bytes, stacks, stamped};

/// Bytes of records per second and core at the highest rate of switches that is recorded without slices.
const SWITCH_BYTES: f64 = 50_000.0 * 2.0 * 48.0;
/// Where the kernel lists the numbers of its tracepoints. Nothing is mounted for this.
const TRACEPOINTS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// The place of the woken thread's id in the data of `sched_waking`: after eight bytes of every tracepoint and the name.
const WOKEN_AT: usize = 24;

/// One record. The records of a thread are in the order of time.
#[derive(Debug)]
pub(crate) enum Recorded {
    /// The stack of a thread that is about to leave its core.
    Stack(Box<RawSample>),
    Left {
        pid: i32,
        tid: i32,
        preempted: bool,
    },
    Came {
        pid: i32,
        tid: i32,
    },
    /// A thread ends.
    Exited {
        tid: i32,
    },
    /// The thread with this stack wakes another one.
    Waking {
        woken: i32,
        by: Box<RawSample>,
    },
    /// Records that the kernel dropped; `switches` is true if these include switches.
    Lost {
        records: u64,
        switches: bool,
    },
}

/// The events of all cores. Closing them leaves nothing in the kernel.
#[derive(Default)]
pub(crate) struct Records {
    cores: Vec<Core>,
    /// Records that arrived before their turn.
    early: Vec<(u64, Recorded)>,
}

struct Core {
    switches: (Counter, Sampler),
    stacks: (Counter, Sampler),
    wakers: Option<(Counter, Sampler)>,
}

impl std::fmt::Debug for Records {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Records");
        shown
            .field("cores", &self.cores.len())
            .finish_non_exhaustive()
    }
}

/// The number of the tracepoint `sched:sched_waking`.
///
/// # Errors
/// Why it isn't known.
pub(crate) fn waking() -> Result<u64, String> {
    let mut problem = String::new();
    for folder in TRACEPOINTS {
        let path = format!("{folder}/events/sched/sched_waking/id");
        match std::fs::read_to_string(&path).map(|text| text.trim().parse()) {
            Ok(Ok(number)) => return Ok(number),
            Ok(Err(_)) => problem = format!("{path} holds no number"),
            Err(_) if std::fs::read_dir(folder).is_ok_and(|mut all| all.next().is_none()) => {
                problem = "tracefs is not mounted (mount -t tracefs tracefs /sys/kernel/tracing)"
                    .to_owned();
                break;
            }
            Err(error) => problem = format!("{path}: {error}"),
        }
    }
    Err(problem)
}

impl Records {
    /// Opens the events, disabled. `waking` is the number of a tracepoint.
    pub(crate) fn open(cores: &[u32], copies: bool, waking: Option<u64>) -> Result<Self, Refused> {
        // All three kinds of events share the memory for rings.
        let share = 3 * cores.len();
        let power = ring(share, most_stacks(copies) * stack_bytes(copies));
        let switches = on_cores(cores, ring(share, SWITCH_BYTES), |core| {
            let opts = Opts {
                extra_record: ExtraRecord {
                    ctx_switch: true,
                    task: true,
                    ..ExtraRecord::default()
                },
                ..stamped()
            };
            Counter::new(Software::Dummy, (Proc::ALL, Cpu(core)), opts)
        })?;
        let sampled = |raw| Opts {
            sample_on: SampleOn::Count(11),
            sample_format: SampleFormat {
                raw,
                ..stacks(copies)
            },
            ..stamped()
        };
        let stacks = on_cores(cores, power, |core| {
            Counter::new(Software::CtxSwitch, (Proc::ALL, Cpu(core)), sampled(false))
        })?;
        let wakers = waking.map(|id| {
            on_cores(cores, power, |core| {
                Counter::new(Tracepoint { id }, (Proc::ALL, Cpu(core)), sampled(true))
            })
        });
        let mut wakers = wakers.transpose()?.unwrap_or_default().into_iter();
        let both = switches.into_iter().zip(stacks);
        let cores = both.map(|(switches, stacks)| Core {
            switches,
            stacks,
            wakers: wakers.next(),
        });
        Ok(Self {
            cores: cores.collect(),
            ..Self::default()
        })
    }

    /// Returns true if wakings are among the records.
    pub(crate) fn has_wakers(&self) -> bool {
        self.cores.iter().any(|core| core.wakers.is_some())
    }

    pub(crate) fn enable(&self) -> io::Result<()> {
        self.counters().try_for_each(Counter::enable)
    }

    pub(crate) fn disable(&self) -> io::Result<()> {
        self.counters().try_for_each(Counter::disable)
    }

    /// Records the stack of one of `many` switches from now on.
    pub(crate) fn one_of(&self, many: u64) -> io::Result<()> {
        self.cores.iter().try_for_each(|core| {
            core.stacks.1.sample_on(many.max(1))?;
            let wakers = core.wakers.as_ref();
            wakers.map_or(Ok(()), |(_, sampler)| sampler.sample_on(many.max(1)))
        })
    }

    /// Returns all records until a moment of the kernel's clock, in order of time. At that moment or later, rings may
    /// hold records of one core and not yet of another.
    pub(crate) fn take(&mut self, until: u64) -> Vec<(u64, Recorded)> {
        let mut found = std::mem::take(&mut self.early);
        for core in &self.cores {
            let wakers = core.wakers.iter();
            for (ring, (_, sampler)) in [&core.switches, &core.stacks]
                .into_iter()
                .chain(wakers)
                .enumerate()
            {
                let records = sampler.iter().into_iter().flatten();
                found.extend(records.filter_map(|(_, record)| recorded(record, ring == 0)));
            }
        }
        // The stack of a switch precedes the switch.
        found.sort_by_key(|(time, record)| (*time, !matches!(record, Recorded::Stack(_))));
        let late = found.partition_point(|(time, _)| *time < until);
        self.early = found.split_off(late);
        found
    }

    fn counters(&self) -> impl Iterator<Item = &Counter> {
        self.cores.iter().flat_map(|core| {
            let wakers = core.wakers.iter();
            let all = [&core.switches, &core.stacks].into_iter().chain(wakers);
            all.map(|(counter, _)| counter)
        })
    }
}

fn recorded(record: Record, switches: bool) -> Option<(u64, Recorded)> {
    match record {
        Record::CtxSwitch(switch) => {
            let id = switch.record_id?;
            let (time, task) = (id.time?, id.task?);
            let (pid, tid) = (task.pid as i32, task.tid as i32);
            let record = match switch.info {
                Switch::OutTo { preempt, .. } => Recorded::Left {
                    pid,
                    tid,
                    preempted: preempt,
                },
                Switch::InFrom(_) => Recorded::Came { pid, tid },
            };
            // An ended thread has no id.
            (tid > 0).then_some((time, record))
        }
        Record::Sample(mut sample) => {
            let data = sample.raw.take();
            let sample = Box::new(raw(*sample)?);
            let time = sample.time_ns;
            match data {
                None => Some((time, Recorded::Stack(sample))),
                Some(data) => Some((
                    time,
                    Recorded::Waking {
                        woken: woken(&data)?,
                        by: sample,
                    },
                )),
            }
        }
        Record::Exit(exit) => {
            let tid = exit.task.tid as i32;
            Some((exit.record_id?.time?, Recorded::Exited { tid }))
        }
        Record::LostRecords(lost) => {
            let time = lost.record_id.and_then(|id| id.time).unwrap_or(0);
            let records = lost.lost_records;
            Some((time, Recorded::Lost { records, switches }))
        }
        _ => None,
    }
}

/// The woken thread in the data of `sched_waking`.
fn woken(data: &[u8]) -> Option<i32> {
    let bytes = data.get(WOKEN_AT..WOKEN_AT + 4)?;
    bytes.try_into().map(i32::from_ne_bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_woken_thread_is_read() {
        let mut data = vec![0u8; 36];
        data[24..28].copy_from_slice(&4711i32.to_ne_bytes());
        assert_eq!(woken(&data), Some(4711));
        assert_eq!(woken(&data[..26]), None);
    }
}
