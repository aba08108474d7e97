//! Records of counters: numbers that are added to.

/// Bytes of a number.
pub(crate) const COUNTER_BYTES: usize = size_of::<i64>();

/// The numbers in a record of counters, which [`Op::Add`](crate::Op::Add) writes: eight bytes each, little-endian.
/// Bytes that make no whole number count for nothing.
pub fn counters(value: &[u8]) -> impl Iterator<Item = i64> {
    let (numbers, _) = value.as_chunks::<COUNTER_BYTES>();
    numbers.iter().map(|bytes| i64::from_le_bytes(*bytes))
}

/// The record of counters after an addition, which stops at the ends of the numbers' range.
pub fn added(value: &[u8], by: &[i64]) -> Vec<u8> {
    let mut sums: Vec<i64> = counters(value).collect();
    sums.resize(sums.len().max(by.len()), 0);
    for (sum, more) in sums.iter_mut().zip(by) {
        *sum = sum.saturating_add(*more);
    }
    bytes_of(&sums)
}

/// The record of counters after an addition to the one that is there, or else to what it starts with.
pub fn raised(record: Option<&[u8]>, start: &[i64], by: &[i64]) -> Vec<u8> {
    match record {
        Some(record) => added(record, by),
        None => added(&bytes_of(start), by),
    }
}

fn bytes_of(counters: &[i64]) -> Vec<u8> {
    counters.iter().flat_map(|it| it.to_le_bytes()).collect()
}
