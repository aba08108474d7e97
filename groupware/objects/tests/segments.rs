//! Segments of uploads are read back unchanged, and are no content.

use groupware_content::{ContentError, Segments};
use plimsoll_tests::objects::{MAKES, ObjectServer};

use crate::support::{content, memory, open};

#[test]
fn segments_come_back_from_each_make() {
    for server in MAKES.into_iter().filter_map(ObjectServer::of) {
        let shelf = open(&server, server.address(), &memory()).unwrap();
        let (one, other) = (content(1, 300_000), content(2, 9 << 20));
        assert!(shelf.list().unwrap().is_empty());
        for (name, content) in [("one", &one), ("other", &other)] {
            shelf.put(name, &|| Ok(content.clone())).unwrap();
        }
        let mut names = shelf.list().unwrap();
        names.sort();
        assert_eq!(names, ["one", "other"]);
        for span in [0..9 << 20, 5..6, 7..7, (8 << 20)..9 << 20] {
            let mut found = Vec::new();
            let take = &mut |bytes: &[u8]| {
                found.extend_from_slice(bytes);
                Ok(())
            };
            shelf.read("other", span.clone(), take).unwrap();
            assert!(found == other[span.start as usize..span.end as usize]);
        }
        // Neither is content, which has its own sweep.
        assert!((0..=u8::MAX).all(|first| {
            groupware_content::Objects::list(&*shelf, first)
                .unwrap()
                .is_empty()
        }));
        for _ in 0..2 {
            shelf.remove("other").unwrap();
        }
        let gone = shelf.read("other", 0..1, &mut |_| Ok(()));
        assert!(
            matches!(gone, Err(ContentError::Missing { .. })),
            "{gone:?}"
        );
        assert_eq!(shelf.list().unwrap(), ["one"]);
    }
}
