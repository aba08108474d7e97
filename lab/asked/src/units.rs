//! Units of counters: derived from their names, and how their figures are written.

/// The unit that the name of a counter shows, by the conventions of Prometheus and of common servers.
pub(crate) fn of_name(column: &str) -> Option<&'static str> {
    let name = column.to_ascii_lowercase();
    let ends = ["_total", "_sum"];
    let name = ends.iter().fold(name.as_str(), |name, end| {
        name.strip_suffix(end).unwrap_or(name)
    });
    let ends = [
        ("_seconds", "s"),
        ("_milliseconds", "ms"),
        ("_ms", "ms"),
        ("_usec", "µs"),
        ("_us", "µs"),
        ("_ns", "ns"),
        ("_nanoseconds", "ns"),
        ("_bytes", "bytes"),
    ];
    if name == "usec" {
        return Some("µs");
    }
    let found = ends.iter().find(|(end, _)| name.ends_with(end));
    found.map(|(_, unit)| *unit)
}

/// Microseconds of a unit of time; `None` of any other unit.
fn microseconds(unit: &str) -> Option<f64> {
    match unit {
        "s" => Some(1e6),
        "ms" => Some(1e3),
        "µs" | "us" => Some(1.0),
        "ns" => Some(1e-3),
        _ => None,
    }
}

/// Returns true for a unit of time.
pub(crate) fn is_time(unit: Option<&str>) -> bool {
    unit.and_then(microseconds).is_some()
}

/// A value with its unit, such as `3.10 ms`, `812`, or `1.20 MB`, in the digits that its half width supports.
pub(crate) fn value(value: f64, unit: Option<&str>, interval: Option<(f64, f64)>) -> String {
    let largest = interval.map_or(value.abs(), |(low, high)| {
        value.abs().max((high - low).abs() / 2.0)
    });
    let (scale, shown) = scale(largest, unit);
    let digits = digits(largest * scale);
    let number = |value: f64| {
        let text = format!("{:.digits$}", (value * scale).abs());
        let is_zero = !text.bytes().any(|byte| (b'1'..=b'9').contains(&byte));
        match value < 0.0 && !is_zero {
            true => format!("−{text}"),
            false => text,
        }
    };
    let shown = if shown.is_empty() {
        String::new()
    } else {
        format!(" {shown}")
    };
    let interval = interval.map(|(low, high)| format!(" [{}, {}]", number(low), number(high)));
    format!("{}{shown}{}", number(value), interval.unwrap_or_default())
}

/// Returns the factor for values of this size, and the unit in which they are shown.
fn scale(largest: f64, unit: Option<&str>) -> (f64, String) {
    let Some(unit) = unit else {
        return (1.0, String::new());
    };
    if let Some(us) = microseconds(unit) {
        let us_of_largest = largest * us;
        return match us_of_largest {
            small if small < 1000.0 => (us, "µs".to_owned()),
            small if small < 1e6 => (us / 1e3, "ms".to_owned()),
            _ => (us / 1e6, "s".to_owned()),
        };
    }
    if unit == "bytes" {
        return match largest {
            small if small < 1e3 => (1.0, "bytes".to_owned()),
            small if small < 1e6 => (1e-3, "kB".to_owned()),
            _ => (1e-6, "MB".to_owned()),
        };
    }
    (1.0, unit.to_owned())
}

fn digits(largest: f64) -> usize {
    match largest {
        small if small < 0.1 => 4,
        small if small < 1.0 => 3,
        small if small < 10.0 => 2,
        small if small < 100.0 => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_show_units() {
        for (name, unit) in [
            ("go_gc_duration_seconds_sum", Some("s")),
            ("process_cpu_seconds_total", Some("s")),
            ("usec", Some("µs")),
            ("go_memstats_alloc_bytes_total", Some("bytes")),
            ("calls", None),
            ("status", None),
        ] {
            assert_eq!(of_name(name), unit, "{name}");
        }
    }

    #[test]
    fn values_have_units_and_digits() {
        for (of, unit, interval, text) in [
            (3.1, Some("ms"), Some((2.9, 3.3)), "3.10 ms [2.90, 3.30]"),
            (-0.0031, Some("s"), None, "−3.10 ms"),
            (12.3, Some("µs"), Some((-1.0, 20.0)), "12.3 µs [−1.0, 20.0]"),
            (812.3, None, Some((800.0, 830.0)), "812 [800, 830]"),
            (0.25, None, None, "0.250"),
            (1_200_000.0, Some("bytes"), None, "1.20 MB"),
            (5.0, Some("pages"), None, "5.00 pages"),
            (-0.000_001, None, None, "0.0000"),
        ] {
            assert_eq!(value(of, unit, interval), text);
        }
    }
}
