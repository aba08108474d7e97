//! Any text as the address of a database and as a file of passwords: parsed or rejected, without a password in the
//! shown form.

use groupware_postgres::{Database, password_in, without_password};

pub(crate) fn run(data: &[u8]) {
    let Ok(data) = std::str::from_utf8(data) else {
        return;
    };
    let _ = without_password(data);
    let _ = password_in(data, ["db", "5432", "mail", "me"]);
    let address = format!("postgres://me:pa55word@{data}");
    if let Ok(database) = Database::parse(&address) {
        assert!(!database.to_string().contains("pa55word") || data.contains("pa55word"));
    }
}
