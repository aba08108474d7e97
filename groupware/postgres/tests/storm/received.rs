//! The results that servers report, and a check of the stored records against them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use groupware_store::{Store, StoreError};

use crate::front::end;
use crate::history::{self, Outcomes};

/// A place in the chain, and the number of the link there.
type Link = (u64, u32);

/// The reports of all servers of a life.
#[derive(Debug, Default)]
pub(crate) struct Received {
    pub(crate) told: Outcomes,
    /// The acknowledged links of the chain, with their places.
    pub(crate) linked: Vec<(u32, u64)>,
    /// The links that were not stored.
    pub(crate) unlinked: Vec<u32>,
    /// The number of links that lost a race.
    pub(crate) outrun: u64,
    pub(crate) wrong: Vec<String>,
    /// The permanent errors, and their counts.
    pub(crate) failed: BTreeMap<String, u64>,
}

impl Received {
    /// Records a line; returns true if it reports a stored batch.
    pub(crate) fn take(&mut self, line: &str) -> bool {
        let mut words = line.splitn(3, ' ');
        let (what, number) = (words.next().unwrap_or_default(), words.next());
        let number: u32 = number
            .and_then(|number| number.parse().ok())
            .unwrap_or_else(|| panic!("a server says: {line}"));
        let rest = words.next().unwrap_or_default();
        match what {
            "stored" => self.told.stored.push(number),
            "refused" => self.told.refused.push(number),
            "unknown" | "open" => self.told.unknown.push(number),
            "conflict" => {
                let words = format!("{number} was refused by a conflict with nobody");
                self.wrong.push(words);
            }
            "linked" => {
                let at = rest.parse().expect("a place");
                self.linked.push((number, at));
            }
            "unlinked" => self.unlinked.push(number),
            "outrun" => {
                self.unlinked.push(number);
                self.outrun += 1;
            }
            "behind" => {
                let words = format!("a chain of {rest} links was read with {number}");
                self.wrong.push(words);
            }
            "failed" => {
                // A batch or a link: record both.
                self.told.refused.push(number);
                self.unlinked.push(number);
                *self.failed.entry(rest.to_owned()).or_default() += 1;
            }
            _ => panic!("a server says: {line}"),
        }
        matches!(what, "stored" | "linked")
    }

    /// Returns the contradictions between the stored records and the reports.
    pub(crate) fn judge(&self, store: &Store) -> Vec<String> {
        let mut wrong = self.wrong.clone();
        wrong.extend(history::wrong(store, std::slice::from_ref(&self.told)));
        let (links, end) = chain(store);
        wrong.extend(self.broken(&links, end));
        wrong.extend(store.integrity().expect("the store can be read"));
        wrong
    }

    /// Returns the defects of a chain of this length.
    fn broken(&self, links: &[Link], end: u64) -> Vec<String> {
        let mut wrong = Vec::new();
        if !links.iter().map(|(at, _)| *at).eq(1..=end) {
            wrong.push(format!(
                "the chain has {} links, and its end says {end}",
                links.len()
            ));
        }
        let there: BTreeSet<u32> = links.iter().map(|(_, number)| *number).collect();
        if there.len() < links.len() {
            wrong.push("a link is there twice".to_owned());
        }
        let places: BTreeSet<(u32, u64)> =
            links.iter().map(|(at, number)| (*number, *at)).collect();
        let lost = self.linked.iter().filter(|link| !places.contains(link));
        let kept = self.unlinked.iter().filter(|it| there.contains(it));
        match (lost.count(), kept.count()) {
            (0, 0) => {}
            (lost, kept) => wrong.push(format!(
                "{lost} links were acknowledged and are gone, {kept} were refused and stay"
            )),
        }
        wrong
    }
}

/// Returns the links of the chain, and its length by the end record.
fn chain(store: &Store) -> (Vec<Link>, u64) {
    let mut links = Vec::new();
    let end = store.read(|snapshot| {
        snapshot.scan("links", b"", None, usize::MAX, &mut |key, record| {
            let at = u64::from_be_bytes(key.try_into().expect("eight bytes"));
            let number = (&*record.value).try_into().expect("four bytes");
            links.push((at, u32::from_be_bytes(number)));
            ControlFlow::Continue(())
        })?;
        let found = snapshot.get("chain", b"end")?;
        Ok::<_, StoreError>(found.as_ref().map_or(0, end))
    });
    (links, end.expect("the store can be read"))
}

/// Checks that each kind of loss would be detected.
pub(crate) fn judges() {
    let mut heard = Received::default();
    for line in [
        "linked 5 1",
        "linked 7 2",
        "outrun 6",
        "unlinked 8",
        "open 9",
    ] {
        assert_eq!(heard.take(line), line.starts_with("linked"));
    }
    let good: &[Link] = &[(1, 5), (2, 7)];
    assert_eq!(heard.broken(good, 2), Vec::<String>::new());
    assert_eq!(heard.broken(&[(1, 5), (2, 7), (3, 9)], 3), [""; 0]);
    let cases: [(&[Link], u64, &str); 7] = [
        (&[(1, 5)], 1, "1 links were acknowledged and are gone"),
        (
            &[(1, 5), (2, 9)],
            2,
            "1 links were acknowledged and are gone",
        ),
        (&[(1, 5), (2, 7), (3, 6)], 3, "1 were refused and stay"),
        (&[(1, 5), (2, 7), (3, 8)], 3, "1 were refused and stay"),
        (&[(1, 5), (2, 7), (3, 7)], 3, "twice"),
        (&[(1, 5), (2, 7), (4, 9)], 4, "its end says 4"),
        (good, 3, "its end says 3"),
    ];
    for (links, end, words) in cases {
        let found = heard.broken(links, end).concat();
        assert!(found.contains(words), "{words}: {found}");
    }
    heard.take("conflict 3");
    heard.take("behind 3 4");
    assert_eq!(heard.wrong.len(), 2);
    heard.take("failed 4 for some reason");
    assert_eq!(heard.failed["for some reason"], 1);
}
