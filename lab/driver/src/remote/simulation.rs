//! Reports over a transport that loses, repeats, and reorders packets: the merged result equals that of a single
//! recorder, to the byte.

use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use hdrhistogram::Histogram;
use lab_stats::encoding::encode_v2;
use lab_workload::Wait;
use proptest::prelude::*;

use super::delivery::{Arrivals, Unacknowledged};
use super::inbox::Inbox;
use super::message::FromGenerator;
use crate::clock::Clock;
use crate::control::Control;
use crate::merger::Merger;
use crate::mix::Mix;
use crate::outline::Outline;
use crate::simulation::{drive, step};
use lab_recorder::event::{DriverEvent, Window};
use lab_recorder::report::{Report, queue};

const WINDOW: u64 = 1_000_000_000;

/// Response times in µs, by generator and window.
type Times = Vec<Vec<Vec<u64>>>;

fn times() -> impl Strategy<Value = Times> {
    let time = prop_oneof![1u64..2_000, 1u64..3_600_000_000];
    let window = proptest::collection::vec(time, 0..20);
    (1usize..5).prop_flat_map(move |windows| {
        let generator = proptest::collection::vec(window.clone(), windows);
        proptest::collection::vec(generator, 1..5)
    })
}

fn window(index: u64, times: &[u64]) -> Box<Window> {
    let mut window = Window::empty(1);
    window.end = Duration::from_nanos((index + 1) * WINDOW);
    window.handed_over = Duration::from_nanos((index + 1) * WINDOW + 7);
    for time in times {
        window.steps[0].times.ok.record(*time).unwrap();
        window.steps[0].counts.bytes += time;
        window.lateness.record(time / 2 + 1).unwrap();
        window.counts.cycles += 1;
    }
    Box::new(window)
}

fn report(index: u64, times: &[u64]) -> Report {
    Report::Window {
        index,
        window: window(index, times),
    }
}

/// Returns all reports of a generator with one worker.
fn reports(windows: &[Vec<u64>]) -> Vec<Report> {
    let windows = (0..).zip(windows);
    let reports = windows.map(|(index, times)| report(index, times));
    reports.chain([Report::Ended { cut: true }]).collect()
}

fn packet(report: Report) -> Vec<u8> {
    let message = FromGenerator::Report { worker: 0, report };
    serde_json::to_vec(&message).unwrap()
}

fn unpacked(packet: &[u8]) -> Report {
    match serde_json::from_slice(packet).unwrap() {
        FromGenerator::Report { report, .. } => report,
        _ => panic!("another message"),
    }
}

/// The part of a window that an archive keeps.
#[derive(Debug, PartialEq)]
struct Archived {
    end: Duration,
    handed_over: Duration,
    cycles: u64,
    bytes: u64,
    histograms: Vec<Vec<u8>>,
}

fn kept(window: &Window) -> Archived {
    let bytes = |histogram: &Histogram<u64>| {
        let mut bytes = Vec::new();
        encode_v2(histogram, &mut bytes).unwrap();
        bytes
    };
    let step = &window.steps[0];
    Archived {
        end: window.end,
        handed_over: window.handed_over,
        cycles: window.counts.cycles,
        bytes: step.counts.bytes,
        histograms: vec![bytes(&step.times.ok), bytes(&window.lateness)],
    }
}

/// A merger of several generators with one worker each, and the ends of its queues.
struct Merging {
    merger: Merger,
    inboxes: Vec<Inbox>,
    reports: std::sync::mpsc::Receiver<(usize, Report)>,
    told: std::sync::mpsc::Receiver<DriverEvent>,
}

impl Merging {
    fn new(generators: usize, windows: usize) -> Self {
        let mut drive = drive(vec![step(Wait::None, 1)]);
        drive.hold = Duration::from_nanos(WINDOW * windows as u64);
        let outline = Arc::new(Outline::of(&Mix::from(&drive)));
        let (queue, reports) = queue(256);
        let (events, told) = sync_channel(256);
        let inbox = |first| Inbox::new(&drive, &outline, (first, 1), &queue);
        let inboxes = (0..generators).map(inbox).collect();
        let emptied = (0..generators).map(|_| sync_channel(1).0).collect();
        let control = Arc::new(Control::new());
        let merger = Merger::new(outline, Clock::start(), control, events, emptied);
        Self {
            merger,
            inboxes,
            reports,
            told,
        }
    }

    fn take(&mut self, generator: usize, report: Report) {
        self.inboxes[generator].pass(0, report).unwrap();
        for (worker, report) in self.reports.try_iter() {
            self.merger.take(worker, report);
        }
    }

    fn windows(self) -> Vec<Archived> {
        assert!(self.merger.all_ended());
        self.merger.end();
        let windows = self.told.try_iter().filter_map(|event| match event {
            DriverEvent::Window(window) => Some(kept(&window)),
            _ => None,
        });
        windows.collect()
    }
}

/// A seeded random generator (SplitMix64).
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % limit.max(1) as u64) as usize
    }
}

/// One generator behind an unreliable transport.
struct Sender {
    left: std::vec::IntoIter<Report>,
    sent: Unacknowledged,
    came: Arrivals,
    /// Packets and acknowledgements in transit.
    packets: Vec<(u64, Vec<u8>)>,
    words: Vec<u64>,
}

impl Sender {
    fn new(windows: &[Vec<u64>]) -> Self {
        Self {
            left: reports(windows).into_iter(),
            // So few that the limit is reached.
            sent: Unacknowledged::new(3, 1 << 20),
            came: Arrivals::default(),
            packets: Vec::new(),
            words: Vec::new(),
        }
    }

    fn is_done(&self) -> bool {
        self.left.len() == 0 && self.sent.is_empty()
    }

    /// Performs a random event. Returns the packets that arrive by it.
    fn go_on(&mut self, chance: &mut Chance) -> Vec<Vec<u8>> {
        match chance.below(5) {
            0 if self.sent.has_room(1 << 18) => {
                if let Some(report) = self.left.next() {
                    self.sent.push(packet(report)).unwrap();
                }
            }
            // All waiting packets are sent, again and again; each may be lost.
            1 => {
                for (number, packet) in self.sent.waiting() {
                    if chance.below(3) > 0 {
                        self.packets.push((number, packet.to_vec()));
                    }
                }
            }
            2 if !self.words.is_empty() => {
                let word = self.words.swap_remove(chance.below(self.words.len()));
                if chance.below(3) > 0 {
                    self.sent.acknowledge(word);
                }
            }
            _ if !self.packets.is_empty() => {
                let at = chance.below(self.packets.len());
                let (number, packet) = match chance.below(3) {
                    0 => self.packets[at].clone(),
                    _ => self.packets.swap_remove(at),
                };
                let ready = self.came.take(number, packet);
                self.words.push(self.came.below());
                return ready;
            }
            _ => {}
        }
        Vec::new()
    }
}

proptest! {
    #[test]
    fn reports_that_are_lost_repeated_and_mixed_make_the_archive_of_one_recorder(
        times in times(),
        seed in any::<u64>(),
    ) {
        let windows = times[0].len();
        let mut one = Merging::new(1, windows);
        let of_all = (0..windows).map(|window| {
            times.iter().flat_map(|generator| generator[window].clone()).collect::<Vec<_>>()
        });
        let of_all: Vec<_> = of_all.collect();
        reports(&of_all).into_iter().for_each(|report| one.take(0, report));

        let mut merging = Merging::new(times.len(), windows);
        let mut senders: Vec<Sender> = times.iter().map(|times| Sender::new(times)).collect();
        let mut chance = Chance(seed);
        let mut turns = 0;
        while !senders.iter().all(Sender::is_done) {
            let at = chance.below(senders.len());
            for packet in senders[at].go_on(&mut chance) {
                merging.take(at, unpacked(&packet));
            }
            turns += 1;
            prop_assert!(turns < 1_000_000, "it ends");
        }
        prop_assert_eq!(merging.windows(), one.windows());
    }
}

#[test]
fn a_window_that_is_missing_or_there_twice_is_never_merged() {
    let check = |order: &[u64], ended: bool, expected: &str| {
        let mut merging = Merging::new(1, 3);
        let windows = order.iter().map(|index| report(*index, &[5]));
        let end = ended.then_some(Report::Ended { cut: true });
        let passed = windows.chain(end).try_for_each(|report| {
            let passed = merging.inboxes[0].pass(0, report);
            passed.map_err(|error| error.to_string())
        });
        assert_eq!(passed.err().as_deref().unwrap_or("well"), expected);
    };
    let nonsense = "a message makes no sense: ";
    check(&[0, 1, 2], true, "well");
    check(
        &[0, 0],
        false,
        &format!("{nonsense}window 0 came where 1 was due"),
    );
    check(
        &[0, 2],
        false,
        &format!("{nonsense}window 2 came where 1 was due"),
    );
    check(
        &[1],
        false,
        &format!("{nonsense}window 1 came where 0 was due"),
    );
    check(
        &[0, 1],
        true,
        &format!("{nonsense}its windows end at 2s, and the trial at 3s"),
    );
}
