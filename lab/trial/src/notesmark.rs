//! NotesMark, the unit of throughput in the reports of Domino: transactions per minute.

/// A throughput in transactions per minute.
pub(crate) fn per_min(throughput_per_s: Option<f64>) -> Option<f64> {
    throughput_per_s.map(|per_s| per_s * 60.0)
}
