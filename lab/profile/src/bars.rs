//! Stacked bars of the time of thread groups, by use; also as SVG.

use std::fmt::Write as _;

use crate::svg::{escaped, hundredths};
use crate::waits::{Class, GroupTime};

/// Height of a bar with its name above it.
const ROW: usize = 38;
/// Groups with a smaller fraction of the largest group's time have no bar.
const LEAST_SHARE: f64 = 0.002;

/// The use of time that a part of a bar shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spent {
    /// On a CPU.
    OnCpu,
    /// Waiting.
    Waiting(Class),
}

impl Spent {
    /// Returns its label.
    pub const fn label(self) -> &'static str {
        match self {
            Self::OnCpu => "on a CPU",
            Self::Waiting(class) => class.label(),
        }
    }

    /// The class of its colour in a style sheet.
    pub const fn colour(self) -> &'static str {
        match self {
            Self::OnCpu => "w-cpu",
            Self::Waiting(Class::NoCore) => "w-core",
            Self::Waiting(Class::Lock | Class::LockOrCondition) => "w-lock",
            Self::Waiting(Class::KernelLock) => "w-kernel",
            Self::Waiting(Class::Disk) => "w-disk",
            Self::Waiting(_) => "w-other",
        }
    }
}

/// A bar for each group of threads, without waits for work, which are most of the time of most threads.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    /// The subject of the bars.
    pub name: String,
    /// `µs per transaction`.
    pub unit: String,
    /// In order.
    pub bars: Vec<Bar>,
}

/// A group of threads.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// The group.
    pub name: String,
    /// Its time by use, in µs.
    pub parts: Vec<(Spent, f64)>,
}

impl Bar {
    fn us(&self) -> f64 {
        self.parts.iter().map(|(_, us)| us).sum()
    }
}

impl Bars {
    /// The bars of groups of threads, `most` at most.
    pub fn of(groups: &[GroupTime], (name, unit): (String, String), most: usize) -> Self {
        let bars = groups.iter().take(most).map(|group| {
            let blocked = group.blocked_us.iter().flatten();
            let blocked = blocked.filter(|(class, _)| !class.is_waiting_for_work());
            let parts = [
                (Spent::OnCpu, group.on_cpu_us),
                (Spent::Waiting(Class::NoCore), group.no_core_us),
            ];
            let blocked = blocked.map(|(class, us)| (Spent::Waiting(*class), *us));
            Bar {
                name: group.group.clone(),
                parts: parts
                    .into_iter()
                    .chain(blocked)
                    .filter(|(_, us)| *us > 0.0)
                    .collect(),
            }
        });
        let mut bars: Vec<Bar> = bars.collect();
        let largest = bars.iter().map(Bar::us).fold(0.0, f64::max);
        bars.retain(|bar| bar.us() > 0.0 && bar.us() >= LEAST_SHARE * largest);
        Self { name, unit, bars }
    }

    /// Returns the uses that the bars show, each once.
    pub fn key(&self) -> Vec<Spent> {
        let mut key: Vec<Spent> = Vec::new();
        for (spent, _) in self.bars.iter().flat_map(|bar| &bar.parts) {
            if !key.contains(spent) {
                key.push(*spent);
            }
        }
        let order = |spent: &Spent| match spent {
            Spent::OnCpu => None,
            Spent::Waiting(class) => Class::ALL.iter().position(|known| known == class),
        };
        key.sort_by_key(order);
        key
    }

    /// Returns the bars as an SVG element; the page's style sheet sets the colours. `figure` formats numbers.
    pub fn svg(&self, figure: &dyn Fn(f64) -> String) -> String {
        let most = self.bars.iter().map(Bar::us).fold(0.0, f64::max);
        let height = self.bars.len() * ROW;
        let name = escaped(&self.name);
        let mut text = format!(
            "<svg class=\"spent\" width=\"100%\" height=\"{height}\" role=\"img\" aria-label=\"{name}\">"
        );
        for (at, bar) in self.bars.iter().enumerate() {
            let top = at * ROW;
            let _ = write!(
                text,
                "<text x=\"0\" y=\"{}\">{}</text><text x=\"100%\" y=\"{}\" text-anchor=\"end\">{} {}</text>",
                top + 13,
                escaped(&bar.name),
                top + 13,
                figure(bar.us()),
                escaped(&self.unit),
            );
            let mut start = 0.0;
            for (spent, us) in &bar.parts {
                let _ = write!(
                    text,
                    "<rect class=\"{}\" x=\"{}%\" y=\"{}\" width=\"{}%\" height=\"14\"><title>{}: {}, {} {}</title></rect>",
                    spent.colour(),
                    hundredths(start / most),
                    top + 18,
                    hundredths(us / most),
                    escaped(&bar.name),
                    spent.label(),
                    figure(*us),
                    escaped(&self.unit),
                );
                start += us;
            }
            text.push('\n');
        }
        text.push_str("</svg>");
        text
    }
}
