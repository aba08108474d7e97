//! Duets against known truth: a simulated shared machine, on which two variants run concurrently or in sequence. Seeds
//! are printed, so that a failure can be repeated; limits are the expected figure and three Monte Carlo standard
//! errors.

use crate::noise::{Noise, within};
use lab_stats::duet::{Block, Windows, effects, interval, max_t, windows};
use lab_stats::paired::{self, sign_flip_p};
use lab_stats::unpaired::Row;
use lab_stats::verdict::ALPHA;

/// Windows of a hold.
const WINDOWS: usize = 60;
/// Standard deviation of a window's log time.
const OF_WINDOW: f64 = 0.05;
/// Standard deviation per start of a server: each reaches a slightly different state.
const OF_START: f64 = 0.005;
const STUDIES: usize = 2_000;

/// Other load on the machine.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Others {
    Nobody,
    /// Busy loops for spells of random length and duty, which the kernel or a hypervisor moves between both cores.
    Roaming,
    /// The same, but each spell is on one random core.
    Pinned,
    /// Consecutive spells, each on one core or on both, and each side has its own core.
    Drifting,
    /// The same, and both sides may use both cores.
    DriftingTogether,
}

impl Others {
    /// Returns true if other load is always present.
    fn are_always_there(self) -> bool {
        matches!(self, Self::Drifting | Self::DriftingTogether)
    }
}

/// A machine with two sides; its time advances by a window at a time.
struct Machine<'a> {
    noise: &'a mut Noise,
    others: Others,
    /// How much slower the left side is, on the log scale.
    side: f64,
    /// Windows until the spell ends; the duty of each core, 0 where it is quiet.
    spell: (f64, [f64; 2]),
}

impl<'a> Machine<'a> {
    fn new(noise: &'a mut Noise, others: Others, side: f64) -> Self {
        Self {
            noise,
            others,
            side,
            spell: (0.0, [0.0; 2]),
        }
    }

    /// Returns how much both sides are slowed in this window, and advances to the next.
    fn slowed(&mut self) -> [f64; 2] {
        if self.others == Others::Nobody {
            return [0.0; 2];
        }
        self.spell.0 -= 1.0;
        if self.spell.0 <= 0.0 {
            self.spell = self.next_spell();
        }
        // The available part of a core is 1 − duty.
        let by = |duty: f64| -(1.0 - duty).ln();
        let of_cores = self.spell.1.map(by);
        match self.others {
            Others::Pinned | Others::Drifting => of_cores,
            // A fifth of it affects one side alone.
            _ => {
                let [left, right] = of_cores;
                let both = match self.others {
                    Others::Roaming => left.max(right),
                    _ => by(f64::midpoint(self.spell.1[0], self.spell.1[1])),
                };
                let own = 0.2 * both * self.noise.normal();
                [both + own, both - own]
            }
        }
    }

    fn next_spell(&mut self) -> (f64, [f64; 2]) {
        if self.others.are_always_there() {
            let duty = 0.8 * self.noise.unit();
            let duties = match (self.noise.unit() * 3.0) as usize {
                0 => [duty, 0.0],
                1 => [0.0, duty],
                _ => [duty; 2],
            };
            return (self.noise.exponential(40.0), duties);
        }
        let was_quiet = self.spell.1 == [0.0; 2];
        let duty = match was_quiet {
            true => 0.2 + 0.5 * self.noise.unit(),
            false => 0.0,
        };
        let lasts = self.noise.exponential(40.0);
        let on_left = self.noise.unit() < 0.5;
        (lasts, if on_left { [duty, 0.0] } else { [0.0, duty] })
    }

    /// Log times of a variant that runs alone.
    fn alone(&mut self, shift: f64) -> f64 {
        let start = shift + OF_START * self.noise.normal();
        let of_window = |machine: &mut Self| {
            let own = OF_WINDOW * machine.noise.normal();
            start + machine.slowed()[0] + own
        };
        (0..WINDOWS).map(|_| of_window(self)).sum::<f64>() / WINDOWS as f64
    }

    /// Returns *b* less *a*, run concurrently.
    fn duet(&mut self, swapped: bool, effect: f64) -> Windows {
        let starts = [0.0, effect].map(|shift| shift + OF_START * self.noise.normal());
        let (mut a, mut b) = (Vec::new(), Vec::new());
        for _ in 0..WINDOWS {
            let [left, right] = self.slowed();
            let (of_a, of_b) = match swapped {
                false => (left + self.side, right),
                true => (right, left + self.side),
            };
            let own = [0, 1].map(|_| OF_WINDOW * self.noise.normal());
            a.push(Some(starts[0] + of_a + own[0]));
            b.push(Some(starts[1] + of_b + own[1]));
        }
        windows(&a, &b).unwrap()
    }
}

/// Assigns sides at random, each equally often.
fn sides(noise: &mut Noise, blocks: usize) -> Vec<bool> {
    let mut sides: Vec<bool> = (0..blocks).map(|block| block % 2 == 1).collect();
    for last in (1..blocks).rev() {
        let at = (noise.unit() * (last + 1) as f64) as usize;
        sides.swap(last, at);
    }
    sides
}

fn duets(noise: &mut Noise, others: Others, side: f64, (n, effect): (usize, f64)) -> Vec<Block> {
    let sides = sides(noise, n);
    let mut machine = Machine::new(noise, others, side);
    let block = |swapped: &bool| Block {
        difference: machine.duet(*swapped, effect).difference,
        swapped: *swapped,
    };
    sides.iter().map(block).collect()
}

/// Simulates the same study with the variants in sequence, in random order.
fn sequence(noise: &mut Noise, others: Others, (n, effect): (usize, f64)) -> Vec<f64> {
    let order = sides(noise, n);
    let mut machine = Machine::new(noise, others, 0.0);
    let block = |b_first: &bool| {
        if *b_first {
            let b = machine.alone(effect);
            b - machine.alone(0.0)
        } else {
            -(machine.alone(0.0) - machine.alone(effect))
        }
    };
    order.iter().map(block).collect()
}

fn p(blocks: &[Block]) -> f64 {
    let row: Row = blocks.iter().map(|block| Some(block.difference)).collect();
    let swapped: Vec<bool> = blocks.iter().map(|block| block.swapped).collect();
    max_t(&[row], &swapped, 1)[0].joint
}

#[test]
fn two_equals_are_told_apart_in_one_duet_of_twenty_at_most() {
    let mut noise = Noise::new(61);
    for others in [Others::Nobody, Others::Roaming, Others::Pinned] {
        for side in [0.0, 0.03, 0.3] {
            for n in [8, 9, 12] {
                let of = |noise: &mut Noise| p(&duets(noise, others, side, (n, 0.0)));
                let wrong = (0..STUDIES).filter(|_| of(&mut noise) <= ALPHA).count();
                println!(
                    "{others:?}, left slower by {side}, {n} blocks: {wrong} of {STUDIES} false"
                );
                let (above, error) = within(wrong, STUDIES, ALPHA);
                assert!(above <= error, "{others:?} {side} {n}: {wrong}");
            }
        }
    }
}

/// Twelve blocks have 924 assignments, so that the level is just below the nominal one.
#[test]
fn the_level_is_exact_at_twelve_blocks() {
    let mut noise = Noise::new(62);
    let studies = 10_000;
    let of = |noise: &mut Noise| p(&duets(noise, Others::Roaming, 0.03, (12, 0.0)));
    let wrong = (0..studies).filter(|_| of(&mut noise) <= ALPHA).count();
    println!("Roaming, 12 blocks: {wrong} of {studies} false");
    let level = (ALPHA * 924.0).floor() / 924.0;
    let (above, error) = within(wrong, studies, level);
    assert!(above.abs() <= error, "{wrong} of {studies}");
}

/// Why sign flips alone, after subtracting the sides' difference, are anticonservative.
#[test]
fn signs_of_what_is_left_after_a_fit_are_no_test() {
    let mut noise = Noise::new(63);
    let studies = 10_000;
    let mut wrong = 0;
    for _ in 0..studies {
        let blocks = duets(&mut noise, Others::Nobody, 0.03, (8, 0.0));
        let sides = effects(&blocks).unwrap().sides;
        let left = |block: &Block| match block.swapped {
            true => block.difference - sides,
            false => block.difference + sides,
        };
        let left: Vec<f64> = blocks.iter().map(left).collect();
        wrong += usize::from(sign_flip_p(&left, 1) <= ALPHA);
    }
    println!("8 blocks, signs of residuals: {wrong} of {studies} false");
    let (above, error) = within(wrong, studies, ALPHA);
    assert!(above > error, "{wrong} of {studies}");
}

#[test]
fn what_a_sequence_misses_beside_others_a_duet_finds() {
    let mut noise = Noise::new(64);
    let (n, effect, studies) = (12, 1.05_f64.ln(), 1_000);
    let (mut found, mut missed, mut narrower) = (0, 0, Vec::new());
    for _ in 0..studies {
        let blocks = duets(&mut noise, Others::Roaming, 0.03, (n, effect));
        found += usize::from(p(&blocks) <= ALPHA && effects(&blocks).unwrap().variants > 0.0);
        let row = sequence(&mut noise, Others::Roaming, (n, effect));
        missed += usize::from(sign_flip_p(&row, 1) > ALPHA);
        let (duet, sequence) = (
            interval(&blocks, ALPHA, 1),
            paired::interval(&row, ALPHA, 1),
        );
        narrower.push((sequence.high - sequence.low) / (duet.high - duet.low));
    }
    narrower.sort_by(f64::total_cmp);
    let narrower = narrower[studies / 2];
    let of_sequence = studies - missed;
    println!(
        "5 %, {n} blocks: {found} of {studies} by duet, {of_sequence} in sequence; intervals {narrower:.1} × narrower"
    );
    assert!(found as f64 >= 0.8 * studies as f64, "{found}");
    assert!(of_sequence as f64 <= 0.3 * studies as f64, "{of_sequence}");
    assert!(narrower >= 3.0, "{narrower}");
}

/// Load that moves between cores affects one side alone if each has its own cores, and both alike if they share them:
/// that is why they share them.
#[test]
fn what_drifts_from_core_to_core_cancels_where_the_cores_are_shared() {
    let mut noise = Noise::new(67);
    let (n, effect, studies) = (10, 1.05_f64.ln(), 1_000);
    let mut of = |others: Others, effect: f64| {
        let (mut shown, mut widths) = (0, Vec::new());
        for _ in 0..studies {
            let blocks = duets(&mut noise, others, 0.03, (n, effect));
            shown += usize::from(p(&blocks) <= ALPHA);
            let bounds = interval(&blocks, ALPHA, 1);
            widths.push(bounds.high - bounds.low);
        }
        widths.sort_by(f64::total_cmp);
        (shown, widths[studies / 2])
    };
    for others in [Others::Drifting, Others::DriftingTogether] {
        let (wrong, _) = of(others, 0.0);
        println!("seed 67, {others:?}, {n} blocks, alike: {wrong} of {studies}");
        let (above, error) = within(wrong, studies, ALPHA);
        assert!(above <= error, "{others:?}: {wrong}");
    }
    let (apart, wide) = of(Others::Drifting, effect);
    let (together, narrow) = of(Others::DriftingTogether, effect);
    println!(
        "5 %, {n} blocks: {together} of {studies} on shared cores, {apart} on halves; intervals {:.1} × narrower",
        wide / narrow
    );
    assert!(together as f64 >= 0.8 * studies as f64, "{together}");
    assert!(apart as f64 <= 0.3 * studies as f64, "{apart}");
    assert!(wide / narrow >= 3.0, "{wide} {narrow}");
}

/// A disturbance of one side alone doesn't cancel: a duet is no better there, and its interval shows it.
#[test]
fn a_disturbance_of_one_side_alone_widens_the_interval() {
    let mut noise = Noise::new(65);
    let (n, effect, studies) = (12, 1.05_f64.ln(), 500);
    let widths = |noise: &mut Noise, others| {
        let mut widths: Vec<f64> = (0..studies)
            .map(|_| {
                let blocks = duets(noise, others, 0.03, (n, effect));
                let bounds = interval(&blocks, ALPHA, 1);
                bounds.high - bounds.low
            })
            .collect();
        widths.sort_by(f64::total_cmp);
        widths[studies / 2]
    };
    let roaming = widths(&mut noise, Others::Roaming);
    let pinned = widths(&mut noise, Others::Pinned);
    println!("median width: {roaming:.3} beside roaming loops, {pinned:.3} beside pinned ones");
    assert!(pinned > 5.0 * roaming, "{pinned} {roaming}");
}

#[test]
fn intervals_cover_the_difference() {
    let mut noise = Noise::new(66);
    for others in [Others::Nobody, Others::Roaming, Others::Pinned] {
        for n in [8, 12] {
            let covered = (0..STUDIES)
                .filter(|_| {
                    let bounds = interval(&duets(&mut noise, others, 0.03, (n, 0.04)), ALPHA, 1);
                    bounds.low <= 0.04 && 0.04 <= bounds.high
                })
                .count();
            println!("{others:?}, {n} blocks: {covered} of {STUDIES} cover");
            let (above, error) = within(covered, STUDIES, 1.0 - ALPHA);
            assert!(above >= -error, "{others:?} {n}: {covered}");
        }
    }
}
