//! Groups of neighbouring windows: the points of a chart. It knows no figures.

use lab_archive::model::WindowLine;

/// Groups of neighbouring windows, so that a chart of an hour has as many points as one of a minute.
#[derive(Debug, Clone, Default)]
pub(crate) struct Groups {
    /// Starts of the windows, in whole ms, ascending.
    starts: Vec<u64>,
    /// Windows of a group.
    size: usize,
}

impl Groups {
    /// More points are not visible at the width of a chart.
    const MOST: usize = 160;
    /// Fewer points than this show no trend.
    const MIN: usize = 8;
    /// Responses that a group needs for a p95 and for a rate that isn't mostly random.
    const ANSWERS: u64 = 80;

    /// Creates groups of windows with this number of responses.
    pub(crate) fn new(windows: &[WindowLine], answers: u64) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "`as` saturates; times are positive milliseconds"
        )]
        let mut starts: Vec<u64> = windows.iter().map(|w| w.start_ms.round() as u64).collect();
        starts.sort_unstable();
        // With few responses, groups are wide.
        let count = windows.len() as u64;
        let wide = (count * Self::ANSWERS).div_ceil(answers.max(1));
        let wide = usize::try_from(wide).unwrap_or(usize::MAX);
        let widest = (windows.len() / Self::MIN).max(1);
        let size = windows.len().div_ceil(Self::MOST).max(1);
        Self {
            size: size.max(wide.min(widest)),
            starts,
        }
    }

    /// Returns the group of the window that began at `start_ms`.
    pub(crate) fn of(&self, start_ms: u64) -> usize {
        self.starts
            .partition_point(|start| *start <= start_ms)
            .saturating_sub(1)
            / self.size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_wide_where_answers_are_few() {
        let window = |n: u32| WindowLine {
            start_ms: f64::from(n) * 100.0,
            ..WindowLine::default()
        };
        let windows: Vec<WindowLine> = (0..120).map(window).collect();
        let groups = |answers: u64| 1 + Groups::new(&windows, answers).of(11_900);
        // 52 a second: a group has 80 of them or a little more, not a tenth of a second.
        assert_eq!(groups(624), 8);
        assert_eq!(groups(4_800), 60);
        assert_eq!((groups(1_000_000), groups(0)), (120, 8));
    }
}
