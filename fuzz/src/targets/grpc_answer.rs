//! Any bytes as messages of a call, whole and split in two: the split does not change the result. Each message becomes
//! JSON or an error, and the JSON can be encoded again.

use std::sync::LazyLock;

use lab_dialogues::GrpcMessages;
use lab_workload::{Descriptors, MessageKind};

/// Fields of all kinds: `kinds.proto` beside it, compiled.
static KIND: LazyLock<MessageKind> = LazyLock::new(|| {
    let set = include_bytes!("kinds.binpb");
    let descriptors = Descriptors::parse(set).expect("descriptors");
    let method = descriptors.method("kinds.Service/Call").expect("a method");
    method.hears
});

fn read(pieces: &[&[u8]]) -> (Vec<Result<Vec<u8>, String>>, Option<String>) {
    let mut messages = GrpcMessages::default();
    let mut all = Vec::new();
    for piece in pieces {
        messages.hear(piece);
        loop {
            match messages.take() {
                Ok(Some(message)) => {
                    let mut json = Vec::new();
                    let read = KIND.decode(message, &mut json);
                    all.push(read.map(|()| json));
                }
                Ok(None) => break,
                Err(error) => return (all, Some(error)),
            }
        }
    }
    (all, None)
}

pub(crate) fn run(data: &[u8]) {
    let Some((at, bytes)) = data.split_first() else {
        return;
    };
    let cut = bytes.len() * usize::from(*at) / 256;
    let (first, second) = bytes.split_at(cut);
    let whole = read(&[bytes]);
    assert_eq!(whole, read(&[first, second]));
    for json in whole.0.into_iter().flatten() {
        let text = String::from_utf8(json).expect("JSON is text");
        let mut again = Vec::new();
        // A time or number without a JSON form isn't read back.
        if KIND.encode(&text, &mut again).is_ok() {
            let mut same = Vec::new();
            assert_eq!(KIND.decode(&again, &mut same), Ok(()));
        }
    }
}
