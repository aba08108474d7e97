//! The processed profile format of the Firefox Profiler (<https://profiler.firefox.com>).

use std::collections::BTreeMap;

use fxprof_processed_profile::{
    CategoryHandle, CpuDelta, Frame, FrameFlags, FrameInfo, Profile as Processed,
    ReferenceTimestamp, SamplingInterval, Timestamp,
};

use crate::key::thread_group;
use crate::model::{Kind, Profile, Sample};

/// The process name of all threads: the file has no information about processes.
const PROCESS: &str = "system under test";
const PROCESS_ID: u32 = 1;

/// The profile as JSON for the Firefox Profiler: a thread for each group of threads. Within a second, samples follow each
/// other by their CPU time.
///
/// # Errors
/// None in practice: every value has a JSON form.
pub fn firefox(profile: &Profile, title: &str) -> serde_json::Result<String> {
    let start = ReferenceTimestamp::from_millis_since_unix_epoch(0.0);
    let mut processed = Processed::new(title, start, interval(profile));
    processed.set_symbolicated(true);
    let begin = Timestamp::from_nanos_since_reference(0);
    let process = processed.add_process(PROCESS, PROCESS_ID, begin);
    for (number, (group, samples)) in (1..).zip(by_group(profile)) {
        let thread = processed.add_thread(process, number, begin, false);
        processed.set_thread_name(thread, &group);
        let mut at_ns = 0;
        for sample in samples {
            let functions: Vec<usize> = profile.frames(sample).collect();
            let frames = functions.into_iter().rev().map(|function| FrameInfo {
                frame: Frame::Label(processed.intern_string(&profile.functions[function].name)),
                category_pair: CategoryHandle::OTHER.into(),
                flags: FrameFlags::empty(),
            });
            let frames: Vec<FrameInfo> = frames.collect();
            let stack = processed.intern_stack_frames(thread, frames.into_iter());
            at_ns = at_ns.max(u64::from(sample.second) * 1_000_000_000);
            processed.add_sample(
                thread,
                Timestamp::from_nanos_since_reference(at_ns),
                stack,
                CpuDelta::from_nanos(match profile.kind {
                    Kind::Cpu => sample.ns,
                    Kind::Off => 0,
                }),
                sample.count.try_into().unwrap_or(i32::MAX),
            );
            at_ns = at_ns.saturating_add(sample.ns);
        }
    }
    serde_json::to_string(&processed)
}

/// Samples by group of threads, in order of time.
fn by_group(profile: &Profile) -> BTreeMap<String, Vec<&Sample>> {
    let mut groups: BTreeMap<String, Vec<&Sample>> = BTreeMap::new();
    for sample in &profile.samples {
        let group = thread_group(&profile.threads[sample.thread]).into_owned();
        groups.entry(group).or_default().push(sample);
    }
    for samples in groups.values_mut() {
        samples.sort_by_key(|sample| sample.second);
    }
    groups
}

/// The average CPU time of a sample.
fn interval(profile: &Profile) -> SamplingInterval {
    let all = profile.weight();
    SamplingInterval::from_nanos((all.ns / all.count.max(1)).max(1))
}
