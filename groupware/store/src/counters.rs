//! Counter records: numbers that batches add to.

/// The size of a number in bytes.
pub(crate) const COUNTER_BYTES: usize = size_of::<i64>();

/// The numbers in a counter record, which [`Op::Add`](crate::Op::Add) writes: eight bytes each, little-endian. An
/// incomplete number at the end is ignored.
pub fn counters(value: &[u8]) -> impl Iterator<Item = i64> {
    let (numbers, _) = value.as_chunks::<COUNTER_BYTES>();
    numbers.iter().map(|bytes| i64::from_le_bytes(*bytes))
}

/// Returns the counter record after an addition, which saturates at the range of `i64`.
pub fn added(value: &[u8], by: &[i64]) -> Vec<u8> {
    let mut sums: Vec<i64> = counters(value).collect();
    sums.resize(sums.len().max(by.len()), 0);
    for (sum, more) in sums.iter_mut().zip(by) {
        *sum = sum.saturating_add(*more);
    }
    bytes_of(&sums)
}

/// Returns the counter record after an addition to the existing record, or to `start` if there is none.
pub fn raised(record: Option<&[u8]>, start: &[i64], by: &[i64]) -> Vec<u8> {
    match record {
        Some(record) => added(record, by),
        None => added(&bytes_of(start), by),
    }
}

fn bytes_of(counters: &[i64]) -> Vec<u8> {
    counters.iter().flat_map(|it| it.to_le_bytes()).collect()
}
