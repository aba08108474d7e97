//! Messages between generator and conductor: an invalid message is an error, never a panic.

use lab_driver::remote::{MAX_FRAME_BYTES, check_from_generator, check_to_generator};
use proptest::prelude::*;

fn framed(text: &str) -> Vec<u8> {
    let mut bytes = (text.len() as u32).to_be_bytes().to_vec();
    bytes.extend(text.as_bytes());
    bytes
}

/// Returns a window with one histogram of these bytes.
fn window(histogram: &str) -> String {
    let step = format!(r#"{{"counts":{{"ok":1}},"times":{{"ok":"{histogram}"}}}}"#);
    format!(
        r#"{{"report":{{"worker":0,"report":{{"window":{{"index":0,"window":{{
        "start":{{"secs":0,"nanos":0}},"end":{{"secs":1,"nanos":0}},"handed_over":{{"secs":1,"nanos":0}},
        "counts":{{}},"lateness":"","loop_lag":"","sessions":"","steps":[{step}],"slowest":null}}}}}}}}}}"#
    )
}

#[test]
fn messages_are_read_one_after_the_other() {
    let mut bytes = framed(r#"{"ready":{"threads":[1,2]}}"#);
    bytes.extend(framed(&window("")));
    bytes.extend(framed(
        r#"{"report":{"worker":0,"report":{"ended":{"cut":true}}}}"#,
    ));
    assert_eq!(check_from_generator(&bytes).unwrap(), 3);
    let order = r#"{"order":{"setup_step":1,"zero_ns":null,"stop":false}}"#;
    assert_eq!(check_to_generator(&framed(order)).unwrap(), 1);
}

#[test]
fn what_is_no_message_is_an_error() {
    let check = |bytes: &[u8], expected: &str| {
        let error = check_from_generator(bytes).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    check(&[0, 0, 0], "ended");
    check(&(MAX_FRAME_BYTES + 1).to_be_bytes(), "longer than any");
    check(&framed("{\"ready\":{}}"), "not understood");
    check(&framed("{}")[..5], "ended");
    check(&framed(&window("not base64")), "not understood");
    check(&framed(&window("AAAA")), "not understood");
    check(
        &framed(
            r#"{"report":{"worker":0,"report":{"example":{"t":0,"step":0,"setup":false,"class":"other","detail":""}}}}"#,
        ),
        "not understood",
    );
}

#[test]
fn another_version_is_refused_in_words() {
    let check = |start: &str, expected: &str| {
        let error = check_to_generator(&framed(start)).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    let two = r#"{"start":{"protocol":2,"workload":{"text":"workload: w"},"users":1}}"#;
    check(two, "version 2 of the messages, and this program knows 15");
    let newer = r#"{"start":{"protocol":16,"drives":["of another form"]}}"#;
    check(
        newer,
        "version 16 of the messages, and this program knows 15",
    );
    check(r#"{"start":{"protocol":15}}"#, "not understood");
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        for input in [bytes, framed(&text), framed(&window(&text.replace(['"', '\\'], "")))] {
            let _ = check_from_generator(&input);
            let _ = check_to_generator(&input);
        }
    }
}
