//! The fewest users of a workload whose templates name neighbours.

use std::convert::Infallible;

use crate::model::Workload;
use crate::template::Template;

/// The start of the function that names neighbours.
const NEIGHBOUR: &str = "neighbour(";

impl Workload {
    /// The farthest neighbour that its templates name by a number, in either direction round the ring: with no more
    /// users than that, it is the user itself, or a nearer one. `None` if they name none.
    #[must_use]
    pub fn farthest_neighbour(&self) -> Option<u64> {
        let mut farthest = None;
        let looked = self.try_map(|template: &Template| {
            farthest = farthest.max(farthest_neighbour(template));
            Ok::<(), Infallible>(())
        });
        debug_assert!(looked.is_ok());
        farthest.filter(|places| *places > 0)
    }
}

fn farthest_neighbour(template: &Template) -> Option<u64> {
    let sets = template.sets().iter();
    let of_sets = sets.filter_map(|(_, template)| farthest_neighbour(template));
    of_sets.chain(neighbours(template.source())).max()
}

/// The offsets of neighbours in the code of a template.
fn neighbours(text: &str) -> impl Iterator<Item = u64> {
    text.match_indices(NEIGHBOUR).filter_map(move |(at, _)| {
        let before = &text[..at];
        let opened = before.rfind("{{").max(before.rfind("{%"))?;
        let closed = before.rfind("}}").max(before.rfind("%}"));
        if closed.is_some_and(|closed| closed > opened) {
            return None;
        }
        let (places, _) = text[at + NEIGHBOUR.len()..].split_once(')')?;
        let places = places.trim().parse::<i64>().ok()?;
        Some(places.unsigned_abs())
    })
}

#[cfg(test)]
mod tests {
    use super::neighbours;

    #[test]
    fn only_numbers_in_code_count() {
        let farthest = |text| neighbours(text).max();
        assert_eq!(
            farthest("user{{ pad(neighbour(7), 5) }}@{{ neighbour(2) }}"),
            Some(7)
        );
        assert_eq!(
            farthest("{% if neighbour(-12) > 3 %}x{% endif %}"),
            Some(12)
        );
        for none in [
            "",
            "neighbour(3)",
            "{{ a }} neighbour(3)",
            "{{ neighbour(round) }}",
            "{{ neighbour(3",
        ] {
            assert_eq!(farthest(none), None, "{none}");
        }
    }
}
