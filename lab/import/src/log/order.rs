//! Sorts rows by time: times of whole seconds are spread over their second, and rows out of order are sorted, within
//! bounded memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use lab_workload::timing::mix;

/// Bytes of rows that wait for earlier ones.
const MAX_BYTES: usize = 16 << 20;
/// Overhead of a row besides its text.
const ROW_BYTES: usize = 64;
/// Most rows of one second that are spread together.
const MAX_SECOND: usize = 20_000;

/// A row with the time of its request, µs.
pub(super) type Row = (i64, String);

/// Sorts rows.
pub(super) struct Order {
    /// Rows of one whole second, with the shifts of their times.
    second: Vec<(i64, String)>,
    stamp: i64,
    second_bytes: usize,
    random: u64,
    waiting: BinaryHeap<Reverse<(i64, u64, String)>>,
    waiting_bytes: usize,
    count: u64,
    last: i64,
    /// Rows that were too late for their time, and got that of the row before.
    pub(super) late: u64,
}

impl Order {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            second: Vec::new(),
            stamp: 0,
            second_bytes: 0,
            random: seed,
            waiting: BinaryHeap::new(),
            waiting_bytes: 0,
            count: 0,
            last: i64::MIN,
            late: 0,
        }
    }

    /// Adds a row with an exact time.
    pub(super) fn push(&mut self, us: i64, row: String) {
        self.waiting_bytes += row.capacity() + ROW_BYTES;
        self.waiting.push(Reverse((us, self.count, row)));
        self.count += 1;
    }

    /// Adds a row of a whole second, `shift` before or after its time within it.
    pub(super) fn push_whole(&mut self, stamp: i64, shift: i64, row: String) {
        let is_full = self.second.len() >= MAX_SECOND || self.second_bytes >= MAX_BYTES / 4;
        if stamp != self.stamp || is_full {
            self.spread();
            self.stamp = stamp;
        }
        self.second_bytes += row.capacity() + ROW_BYTES;
        self.second.push((shift, row));
    }

    /// Spreads the rows of a second: each has an equal part of it, and a random place in its part.
    fn spread(&mut self) {
        let rows = std::mem::take(&mut self.second);
        self.second_bytes = 0;
        let part = 1e6 / rows.len() as f64;
        for (place, (shift, row)) in rows.into_iter().enumerate() {
            let within = (place as f64 + self.draw()) * part;
            self.push(self.stamp + (within as i64).min(999_999) + shift, row);
        }
    }

    /// From 0 up to 1 (SplitMix64).
    fn draw(&mut self) -> f64 {
        let bits = mix(self.random);
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        (bits >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// The earliest row, if the queue is full.
    pub(super) fn due(&mut self) -> Option<Row> {
        (self.waiting_bytes > MAX_BYTES)
            .then(|| self.pop())
            .flatten()
    }

    /// The earliest row, after the end of the input.
    pub(super) fn rest(&mut self) -> Option<Row> {
        if !self.second.is_empty() {
            self.spread();
        }
        self.pop()
    }

    fn pop(&mut self) -> Option<Row> {
        let Reverse((us, _, row)) = self.waiting.pop()?;
        self.waiting_bytes -= row.capacity() + ROW_BYTES;
        self.late += u64::from(us < self.last);
        self.last = self.last.max(us);
        Some((self.last, row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(order: &mut Order) -> Vec<(i64, String)> {
        std::iter::from_fn(|| order.rest()).collect()
    }

    #[test]
    fn rows_of_a_second_have_equal_parts_of_it_in_their_order() {
        let spread = |seed| {
            let mut order = Order::new(seed);
            for row in 0..10 {
                order.push_whole(5_000_000, 0, row.to_string());
            }
            rows(&mut order)
        };
        let once = spread(1);
        for (place, (us, row)) in once.iter().enumerate() {
            let part = 5_000_000 + place as i64 * 100_000;
            assert!((part..part + 100_000).contains(us), "{once:?}");
            assert_eq!(*row, place.to_string());
        }
        assert_eq!(once, spread(1));
        assert_ne!(once, spread(2));
    }

    #[test]
    fn what_ends_first_may_have_begun_last() {
        let mut order = Order::new(1);
        order.push(30, "c".into());
        order.push(10, "a".into());
        order.push(20, "b".into());
        order.push(10, "a2".into());
        let found: Vec<String> = rows(&mut order).into_iter().map(|row| row.1).collect();
        assert_eq!(found, ["a", "a2", "b", "c"]);
        assert_eq!(order.late, 0);
    }

    #[test]
    fn memory_is_bounded_and_what_is_too_late_is_counted() {
        let mut order = Order::new(1);
        let row = "x".repeat(1 << 20);
        let mut due = Vec::new();
        for us in 0..40 {
            order.push(us, row.clone());
            due.extend(order.due().map(|row| row.0));
            assert!(order.waiting_bytes <= MAX_BYTES + (2 << 20));
        }
        assert!(!due.is_empty() && due.is_sorted());
        order.push(0, row);
        let rest = rows(&mut order);
        assert_eq!((rest[0].0, order.late), (*due.last().unwrap(), 1));
    }
}
