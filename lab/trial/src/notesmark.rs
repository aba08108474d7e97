//! NotesMark, the throughput unit in reports of Domino: transactions per minute.

/// Converts a throughput to transactions per minute.
pub(crate) fn per_min(throughput_per_s: Option<f64>) -> Option<f64> {
    throughput_per_s.map(|per_s| per_s * 60.0)
}
