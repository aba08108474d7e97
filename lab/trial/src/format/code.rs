//! Names of functions and microseconds, as sentences have them.

use super::figure;

/// Letters of a function's name.
const LETTERS: usize = 100;

/// A name. Of a long one only the end, which is the most specific part.
pub fn code(name: &str) -> String {
    format!("`{}`", shortened(name, LETTERS))
}

/// The end of a long name, which is the most specific part.
pub fn shortened(name: &str, most: usize) -> String {
    let letters = name.chars().count();
    match letters > most {
        true => std::iter::once('…')
            .chain(name.chars().skip(letters - most + 1))
            .collect(),
        false => name.to_owned(),
    }
}

/// `0.415 ms`, `17.9 µs`.
pub fn micros(us: f64) -> String {
    match us.abs() {
        small if small < 100.0 => format!("{} µs", figure(us)),
        _ => format!("{} ms", figure(us / 1000.0)),
    }
}

/// `+17.9 µs [15.9, 20.1]`, with the digits that the interval supports.
pub fn signed_micros(us: f64, interval: Option<(f64, f64)>) -> String {
    let half_width = interval.map_or(0.0, |(low, high)| (high - low) / 2.0);
    let (digits, unit, scale) = match us.abs().max(half_width) {
        small if small < 1.0 => (3, "µs", 1.0),
        small if small < 10.0 => (2, "µs", 1.0),
        small if small < 1000.0 => (1, "µs", 1.0),
        small if small < 10_000.0 => (2, "ms", 1e-3),
        _ => (1, "ms", 1e-3),
    };
    let number = |us: f64| {
        let text = format!("{:.digits$}", (us * scale).abs());
        match us < 0.0 && text.bytes().any(|byte| (b'1'..=b'9').contains(&byte)) {
            true => format!("−{text}"),
            false => text,
        }
    };
    let sign = if us >= 0.0 { "+" } else { "" };
    let interval = interval.map(|(low, high)| format!(" [{}, {}]", number(low), number(high)));
    format!(
        "{sign}{} {unit}{}",
        number(us),
        interval.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_have_the_digits_of_their_intervals() {
        for (us, interval, text) in [
            (17.94, Some((15.9, 20.12)), "+17.9 µs [15.9, 20.1]"),
            (0.21, Some((-9.75, 9.94)), "+0.21 µs [−9.75, 9.94]"),
            (-0.21, Some((-19.75, 9.94)), "−0.2 µs [−19.8, 9.9]"),
            (1129.0, Some((1089.0, 1163.0)), "+1.13 ms [1.09, 1.16]"),
            (-0.000_01, None, "0.000 µs"),
        ] {
            assert_eq!(signed_micros(us, interval), text);
        }
    }

    #[test]
    fn long_names_keep_their_ends() {
        assert_eq!(code("work_17"), "`work_17`");
        let long = code(&format!("{}::work_17", "a".repeat(200)));
        assert_eq!(long.chars().count(), LETTERS + 2);
        assert!(long.starts_with("`…a") && long.ends_with("::work_17`"));
    }
}
