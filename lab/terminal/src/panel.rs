//! The panel on a terminal during the load: the position in the plan, the load now, and its recent past. Text only; the
//! caller updates it.

use std::collections::VecDeque;
use std::time::Duration;

use textwrap::core::display_width;

use crate::words::whole_seconds;

/// The minimum columns of a panel; narrower terminals get plain lines.
pub const LEAST_WIDTH: usize = 60;
/// The maximum columns of a panel.
const MOST_WIDTH: usize = 100;
/// Columns of the names before figures.
const NAMES: usize = 11;
/// Columns of a figure behind its spark line.
const FIGURES: usize = 14;
/// Heights of a spark line.
const SPARKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// The number of seconds that are kept: as many as the widest panel shows.
const KEPT: usize = MOST_WIDTH;

/// The panel's state of a trial, and of the run around it.
#[derive(Debug, Default)]
pub struct Panel {
    /// The trial, its levels, its phase.
    pub title: String,
    /// Finished trials of the plan, all of them, and the invalid ones.
    pub done: (u32, u32, u32),
    /// The remaining load time of the run.
    pub left: Duration,
    /// The elapsed and the remaining load time of the trial.
    pub trial: (Duration, Duration),
    /// Users or sessions, in words.
    pub load: String,
    /// The number of failed requests of the trial, and the newest failure in words.
    pub errors: (u64, String),
    throughput: VecDeque<Option<f64>>,
    p50: VecDeque<Option<f64>>,
    p95: VecDeque<Option<f64>>,
}

impl Panel {
    /// Starts another trial, without figures.
    pub fn begin(&mut self, title: String) {
        *self = Self {
            title,
            done: self.done,
            left: self.left,
            ..Self::default()
        };
    }

    /// Adds the figures of the last second.
    pub fn take(&mut self, tx_per_s: f64, p50_ms: Option<f64>, p95_ms: Option<f64>) {
        let all = [
            (&mut self.throughput, Some(tx_per_s)),
            (&mut self.p50, p50_ms),
            (&mut self.p95, p95_ms),
        ];
        for (line, value) in all {
            if line.len() == KEPT {
                line.pop_front();
            }
            line.push_back(value);
        }
    }

    /// Returns the lines, each at most `width` columns.
    pub fn text(&self, width: usize) -> String {
        let width = width.clamp(LEAST_WIDTH, MOST_WIDTH);
        let (done, of, invalid) = self.done;
        let invalid = match invalid {
            0 => String::new(),
            invalid => format!(" ({invalid} invalid)"),
        };
        let plan = format!(
            "{done} of {of} trials done{invalid}, {} of load left",
            whole_seconds(self.left)
        );
        let (errors, last) = &self.errors;
        let errors = match last.is_empty() {
            true => errors.to_string(),
            false => format!("{errors}, the last: {last}"),
        };
        let ms = |line: &VecDeque<Option<f64>>| {
            let newest = line.back().copied().flatten();
            newest.map_or("-".to_owned(), |ms| format!("{ms:.1} ms"))
        };
        let rate = self
            .throughput
            .back()
            .copied()
            .flatten()
            .unwrap_or_default();
        let lines = [
            self.title.clone(),
            named("plan", &plan),
            named("trial", &self.bar(width - NAMES - FIGURES)),
            named("load", &self.load),
            spark(
                "throughput",
                &self.throughput,
                &format!("{rate:.0} per s"),
                width,
            ),
            spark("p50", &self.p50, &ms(&self.p50), width),
            spark("p95", &self.p95, &ms(&self.p95), width),
            named("errors", &errors),
        ];
        lines.map(|line| clip(&line, width)).join("\n")
    }

    /// The share of the trial's load time that is over.
    fn bar(&self, width: usize) -> String {
        let (over, left) = self.trial;
        let all = (over + left).as_secs_f64();
        let part = if all > 0.0 {
            over.as_secs_f64() / all
        } else {
            0.0
        };
        let full = ((part * width as f64) as usize).min(width);
        let bar = "━".repeat(full) + &"─".repeat(width - full);
        format!("{bar} {} left", whole_seconds(left))
    }
}

fn named(name: &str, text: &str) -> String {
    format!("{name:NAMES$}{text}")
}

/// The newest seconds that fit, from 0 to their maximum, then the figure.
fn spark(name: &str, line: &VecDeque<Option<f64>>, figure: &str, width: usize) -> String {
    let room = width - NAMES - FIGURES;
    let shown = || line.iter().skip(line.len().saturating_sub(room));
    let most = shown().flatten().copied().fold(0.0, f64::max);
    let spark = |value: &Option<f64>| match value {
        Some(value) if most > 0.0 => {
            SPARKS[((value / most * SPARKS.len() as f64) as usize).min(SPARKS.len() - 1)]
        }
        Some(_) => SPARKS[0],
        None => ' ',
    };
    let sparks: String = shown().map(spark).collect();
    named(name, &format!("{sparks:room$} {figure}"))
}

/// Truncates a text to this many columns (some letters take two), and removes control characters.
fn clip(text: &str, width: usize) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let text: String = text.chars().map(plain).collect();
    if display_width(&text) <= width {
        return text.trim_end().to_owned();
    }
    let (mut kept, mut columns) = (String::new(), 0);
    for c in text.chars() {
        columns += display_width(c.encode_utf8(&mut [0; 4]));
        if columns >= width {
            break;
        }
        kept.push(c);
    }
    kept + "…"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panel() -> Panel {
        let mut panel = Panel {
            done: (2, 12, 1),
            left: Duration::from_secs(843),
            ..Panel::default()
        };
        panel.begin("trial 3/12, users 1000: hold".to_owned());
        panel.trial = (Duration::from_secs(45), Duration::from_secs(15));
        panel.load = "1000 users".to_owned();
        panel.errors = (12, "Log in: 503 \u{1b}[2J\nService Unavailable".to_owned());
        for second in 0..120 {
            let p95 = (second % 7 != 0).then_some(10.0 + f64::from(second % 5));
            panel.take(f64::from(second) * 10.0, Some(4.0), p95);
        }
        panel
    }

    #[test]
    fn it_fits_and_says_where_the_run_stands() {
        for width in [10, 60, 80, 300] {
            let text = panel().text(width);
            let most = width.clamp(LEAST_WIDTH, MOST_WIDTH);
            assert_eq!(text.lines().count(), 8, "{text}");
            assert!(
                text.lines().all(|line| line.chars().count() <= most),
                "{text}"
            );
        }
        let text = panel().text(80);
        println!("{text}");
        for words in [
            "trial 3/12, users 1000: hold",
            "2 of 12 trials done (1 invalid), 14 min 3 s of load left",
            "15 s left",
            "1190 per s",
            "4.0 ms",
            "12, the last: Log in: 503  [2J Service Unavailable",
        ] {
            assert!(text.contains(words), "{words}:\n{text}");
        }
        let line = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap();
        // From 650 to 1190 of 1190.
        assert!(line("throughput").contains('▅') && line("throughput").contains("██"));
        assert!(!line("throughput").contains('▁'), "its scale begins at 0");
        assert!(line("p50").contains("████"), "what is even is full");
    }

    #[test]
    fn letters_of_two_columns_wrap_no_line() {
        let mut panel = panel();
        panel.errors = (1, "Войти 登录: 服务不可用 ".repeat(9));
        for width in [60, 61, 62, 63] {
            let text = panel.text(width);
            let widths = text.lines().map(display_width);
            assert!(widths.max() <= Some(width), "{text}");
            assert_eq!(text.lines().count(), 8, "{text}");
        }
    }

    #[test]
    fn another_trial_begins_empty_and_keeps_the_plan() {
        let mut panel = panel();
        panel.begin("trial 4/12".to_owned());
        let text = panel.text(80);
        assert!(
            text.contains("2 of 12 trials done") && !text.contains('█'),
            "{text}"
        );
        assert!(
            text.contains("errors     0") && text.contains("p95"),
            "{text}"
        );
    }
}
