//! Patterns of names, in which `*` is any text and `?` any letter.

/// Returns true if a name matches one of these patterns.
pub(crate) fn matches_any(patterns: &[String], name: &str) -> bool {
    patterns.iter().any(|pattern| matches(pattern, name))
}

/// Needs at most pattern × name steps: after a mismatch only the last `*` matches one letter more.
fn matches(pattern: &str, name: &str) -> bool {
    if !pattern.contains(['*', '?']) {
        return pattern == name;
    }
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(c) if *c == '?' || *c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match &mut star {
                Some((at, from)) => {
                    *from += 1;
                    (p, n) = (*at + 1, *from);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks_match() {
        for (pattern, name, is) in [
            ("go_gc_*", "go_gc_cycles_total", true),
            ("go_gc_*", "go_memstats", false),
            ("*.time", "sun.gc.collector.0.time", true),
            ("sun.gc.collector.?.time", "sun.gc.collector.0.time", true),
            ("a*b*c", "a__b_b__c", true),
            ("a*b*c", "a__c", false),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("calls", "calls", true),
            ("calls", "calls2", false),
        ] {
            assert_eq!(matches(pattern, name), is, "{pattern} {name}");
        }
    }
}
