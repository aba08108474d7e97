//! Any text as the address of an object store and as a file of credentials: parsed or rejected, without a secret in the
//! shown form.

use groupware_objects::{Address, Credentials};

pub(crate) fn run(data: &[u8]) {
    let Ok(data) = std::str::from_utf8(data) else {
        return;
    };
    for text in [data, &format!("s3://{data}")] {
        if let Ok(address) = Address::parse(text) {
            let again = Address::parse(&address.to_string());
            assert_eq!(again.as_ref(), Ok(&address));
        }
    }
    let file = format!("[p]\naws_access_key_id=a\naws_secret_access_key=pa55word\n{data}");
    if let Ok(found) = Credentials::of_profile(&file, "p") {
        assert!(!format!("{found:?}").contains("pa55word"));
    }
    let _ = Credentials::of_profile(data, "default");
}
