//! Messages between generator and conductor: what is no message is an error, never more.

use lab_driver::remote::{MAX_FRAME_BYTES, check_from_generator, check_to_generator};
use proptest::prelude::*;

fn framed(text: &str) -> Vec<u8> {
    let mut bytes = (text.len() as u32).to_be_bytes().to_vec();
    bytes.extend(text.as_bytes());
    bytes
}

/// A window with one histogram of some bytes.
fn window(histogram: &str) -> String {
    let step = format!(
        r#"{{"ok":"{histogram}","service":"","error":"","phases":["","","","","",""],"events":["",""],"errors":[0,0,0,0,0],"redirects":0,"plain_bytes":0,"skipped":0,"waits":0,
        "wait_sum_us":0,"bytes":0}}"#
    );
    format!(
        r#"{{"report":{{"worker":0,"report":{{"window":{{"index":0,"end":1,"handed_over":2,"window":
        {{"users":0,"cycles":0,"overruns":0,"arrived":0,"waiting":0,"dropped":0,
        "client":{{"connects":0,"stale_retries":0}},
        "unanswered":{{"count":0,"oldest":{{"secs":0,"nanos":0}}}},"lateness":"","loop_lag":"","sessions":"","steps":[{step}]}}}}}}}}}}"#
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
    check(&framed(&window("not base64")), "makes no sense");
    check(&framed(&window("AAAA")), "makes no sense");
    check(
        &framed(
            r#"{"report":{"worker":0,"report":{"example":{"t":0,"step":0,"setup":false,"class":9,"detail":""}}}}"#,
        ),
        "makes no sense",
    );
}

#[test]
fn another_version_is_refused_in_words() {
    let check = |start: &str, expected: &str| {
        let error = check_to_generator(&framed(start)).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    let two = r#"{"start":{"protocol":2,"workload":{"text":"workload: w"},"users":1}}"#;
    check(two, "version 2 of the messages, and this program knows 12");
    let ten = r#"{"start":{"protocol":13,"drives":["of another form"]}}"#;
    check(ten, "version 13 of the messages, and this program knows 12");
    check(r#"{"start":{"protocol":12}}"#, "not understood");
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
