//! Fictional names of people and cities, and words, from lists of 512 each: realistic test data.

use std::fmt::Write as _;
use std::sync::LazyLock;

/// Most words of a text.
const MAX_WORDS: i64 = 100_000;
/// Domains of generated addresses, which are reserved (RFC 2606).
const DOMAINS: [&str; 4] = ["example.com", "example.org", "example.net", "mail.example"];

type List = LazyLock<Vec<&'static str>>;

static FIRST_NAMES: List = LazyLock::new(|| list(include_str!("people/first_names.txt")));
static LAST_NAMES: List = LazyLock::new(|| list(include_str!("people/last_names.txt")));
static CITIES: List = LazyLock::new(|| list(include_str!("people/cities.txt")));
static WORDS: List = LazyLock::new(|| list(include_str!("people/words.txt")));

fn list(text: &'static str) -> Vec<&'static str> {
    text.split_whitespace().collect()
}

/// A kind of personal data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Person {
    /// A first name.
    FirstName,
    /// A last name.
    LastName,
    /// Both.
    FullName,
    /// A mail address at a reserved domain.
    Email,
    /// A city.
    City,
}

impl Person {
    /// Appends a value. `bits` returns random bits.
    pub fn push(self, bits: &mut impl FnMut() -> u64, out: &mut String) {
        match self {
            Self::FirstName => out.push_str(pick(&FIRST_NAMES, bits())),
            Self::LastName => out.push_str(pick(&LAST_NAMES, bits())),
            Self::City => out.push_str(pick(&CITIES, bits())),
            Self::FullName => {
                Self::FirstName.push(bits, out);
                out.push(' ');
                Self::LastName.push(bits, out);
            }
            Self::Email => {
                let start = out.len();
                out.push_str(pick(&FIRST_NAMES, bits()));
                out.push('.');
                out.push_str(pick(&LAST_NAMES, bits()));
                out[start..].make_ascii_lowercase();
                let rest = bits();
                let domain = DOMAINS[(rest % DOMAINS.len() as u64) as usize];
                let number = (rest >> 32) % 1_000;
                // Writing to a string can't fail.
                let _ = write!(out, "{number}@{domain}");
            }
        }
    }
}

/// Appends this many words.
///
/// # Errors
/// Describes a number that is negative or too large.
pub fn push_words(n: i64, bits: &mut impl FnMut() -> u64, out: &mut String) -> Result<(), String> {
    if !(0..=MAX_WORDS).contains(&n) {
        return Err(format!("{n} is not within 0 to {MAX_WORDS}"));
    }
    for at in 0..n {
        if at > 0 {
            out.push(' ');
        }
        out.push_str(pick(&WORDS, bits()));
    }
    Ok(())
}

/// Returns the entry of 512 that the nine highest bits select.
fn pick(list: &List, bits: u64) -> &'static str {
    list.get((bits >> 55) as usize).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const ENTRIES: usize = 512;

    #[test]
    fn each_list_has_512_different_entries_of_letters() {
        for list in [&FIRST_NAMES, &LAST_NAMES, &CITIES, &WORDS] {
            let entries: BTreeSet<&str> = list.iter().copied().collect();
            assert_eq!((list.len(), entries.len()), (ENTRIES, ENTRIES));
            let is_word = |entry: &&str| entry.bytes().all(|b| b.is_ascii_alphabetic());
            assert!(list.iter().all(is_word), "{entries:?}");
        }
    }

    #[test]
    fn highest_bits_choose_among_all_entries() {
        let mut next = 0_u64;
        let mut bits = || {
            next += 1;
            (next - 1) << 55
        };
        let mut out = String::new();
        push_words(512, &mut bits, &mut out).unwrap();
        let words: BTreeSet<&str> = out.split(' ').collect();
        assert_eq!(words.len(), ENTRIES);
        assert!(push_words(-1, &mut bits, &mut out).is_err());
        assert!(push_words(MAX_WORDS + 1, &mut bits, &mut out).is_err());
    }

    #[test]
    fn addresses_are_of_domains_that_nobody_has() {
        let mut seed = 7_u64;
        let mut bits = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            seed
        };
        for _ in 0..200 {
            let mut out = String::new();
            Person::Email.push(&mut bits, &mut out);
            let (local, domain) = out.split_once('@').unwrap();
            assert!(DOMAINS.contains(&domain), "{out}");
            assert!(local.contains('.') && out.is_ascii(), "{out}");
            assert_eq!(out, out.to_lowercase());
        }
    }
}
