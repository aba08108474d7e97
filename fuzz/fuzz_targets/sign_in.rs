//! Any bytes as the headers and forms by which a client signs in.
//!
//! `cargo +nightly fuzz run sign_in -- -max_len=4096`
#![no_main]

use groupware_proto_http::{authorization, login_form, session_cookie};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = authorization(data);
    let _ = session_cookie(data);
    let _ = login_form(data);
});
