//! Any bytes as the headers and forms of a client's sign-in.

use groupware_proto_http::{authorization, login_form, session_cookie};

pub(crate) fn run(data: &[u8]) {
    let _ = authorization(data);
    let _ = session_cookie(data);
    let _ = login_form(data);
}
