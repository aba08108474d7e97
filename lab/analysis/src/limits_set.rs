//! Sentences on the limits of checks that a study sets itself.

use lab_plan::checks::{Limit, Limits, limits};
use lab_trial::format;

/// Reports that the study sets such limits; `None` if it sets none.
pub(crate) fn sentence(words: &[String]) -> Option<String> {
    (!words.is_empty()).then(|| {
        format!(
            "The study sets limits of checks itself: {}.",
            format::list(words)
        )
    })
}

/// Each limit that the study sets, in words.
pub(crate) fn words(set: &Limits) -> Vec<String> {
    let of = |limit: &'static Limit| {
        set.0.get(limit.key)?;
        let usual = Limits::default().of(limit);
        let now = set.of(limit);
        let text = |value: f64| {
            if value.is_finite() {
                format::limit(value, limit.unit)
            } else {
                "none".to_owned()
            }
        };
        let changed = |what: &str, now: f64, usual: f64| {
            ((now - usual).abs() > 0.0 && now.is_finite())
                .then(|| format!("{what} beyond {} (usually {})", text(now), text(usual)))
        };
        let both = [
            changed("warns", now.warn, usual.warn),
            changed("is invalid", now.invalid, usual.invalid),
        ];
        let both: Vec<String> = both.into_iter().flatten().collect();
        (!both.is_empty()).then(|| format!("`{}` {}", limit.key, both.join(" and ")))
    };
    limits().filter_map(of).collect()
}
