//! Any bytes as messages of the XML protocol, one after another, separated by 0: each is answered, and a registered
//! service can be queried. The parsed form is not much larger than the body.

use groupware_lookup::xml::{self, Message};
use groupware_lookup::{Context, Layout, LookupQuery, Registrant, query};
use groupware_proto_lookup::limits::COPIES_BYTES;
use groupware_proto_lookup::{Raw, canonical};
use groupware_store::{Store, StoreOptions};

fn bytes(raw: &Raw) -> usize {
    let texts = raw.texts.iter().map(|(name, text)| name.len() + text.len());
    raw.xml.len() + texts.sum::<usize>()
}

pub(crate) fn run(data: &[u8]) {
    let store = Store::memory(StoreOptions::default()).expect("a store in memory");
    let layout = Layout::Indexed;
    for (number, body) in data.split(|byte| *byte == 0).take(4).enumerate() {
        let message = match Message::parse(body) {
            Ok(message) => message,
            Err(error) => {
                assert!(!xml::fault(&error).is_empty());
                continue;
            }
        };
        let blocks: usize = message
            .data
            .iter()
            .flat_map(|data| &data.blocks)
            .map(bytes)
            .sum();
        let subjects = message
            .metadata
            .iter()
            .filter_map(|metadata| metadata.subject.as_ref());
        let all = blocks + subjects.map(bytes).sum::<usize>();
        assert!(
            all <= 4 * body.len() + COPIES_BYTES,
            "{all} of {}",
            body.len()
        );
        for block in message.data.iter().flat_map(|data| &data.blocks) {
            let content = canonical(&block.xml).expect("a block stands alone");
            assert!(content.len() <= 4 * block.xml.len() + 64);
        }
        let decided = store.read(|snapshot| {
            let context = Context {
                snapshot,
                layout,
                now: 1000,
                random: number as u128,
                who: &Registrant::Anybody,
            };
            xml::decide(&context, &message, xml::ScanBudget::WHOLE)
        });
        let decision = decided.expect("nothing is stored that can't be read");
        assert!(std::str::from_utf8(&decision.reply).is_ok());
        if !decision.batch.is_empty() {
            store
                .commit_blocking(decision.batch)
                .expect("within the store's limits");
        }
    }
    let all = LookupQuery::parse(std::iter::empty()).expect("an empty query");
    let found = store.read(|snapshot| query(snapshot, layout, &all, 1000));
    let found = found.expect("what is stored can be read");
    serde_json::from_slice::<serde_json::Value>(&found.body).expect("JSON");
}
