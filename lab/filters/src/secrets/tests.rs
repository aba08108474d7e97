//! Tests of `secrets`.

use serde_json::json;

use super::*;

#[test]
fn names_tell_secrets() {
    for name in [
        "DB_PASSWORD",
        "PGPASSWORD",
        "MYSQL_PWD",
        "apiKey",
        "API_KEY",
        "SECRET",
        "auth-token",
        "AUTHTOKEN",
        "Authorization",
        "AWS_SECRET_ACCESS_KEY",
        "accesskey",
        "BASIC_AUTH",
        "system.command.env.TOKEN",
        "client_secret2",
        "credentials",
    ] {
        assert!(Secrets::default().is_secret(name), "{name}");
    }
    for name in [
        "USER",
        "PORT",
        "SECRET_FILE",
        "TOKEN_TTL",
        "key_size",
        "keyboard",
        "tokens_per_s",
        "author",
        "passes",
        "load.users",
        "PASSWORD_LENGTH",
        "token.bucket",
        "",
    ] {
        assert!(!Secrets::default().is_secret(name), "{name}");
    }
    let listed = Secrets::named(vec!["PIN".to_owned()]);
    assert!(listed.is_secret("PIN") && listed.is_secret("system.command.env.PIN"));
    assert!(!listed.is_secret("SPIN"));
}

#[test]
fn values_are_masked_beside_their_names_and_long_ones_wherever_they_are() {
    let mut secrets = Secrets::default();
    for (name, value) in [
        ("PASSWORD", "hunter2hunter2"),
        ("TOKEN", "hunter2"),
        ("KEY", "abc"),
        ("DATABASE_URL", "postgres://me:pa55word@host/db"),
        ("USER", "somebody"),
        ("EMPTY_KEY", ""),
    ] {
        secrets.learn_env(&[(name.to_owned(), value.to_owned())]);
    }
    for (name, value, shown) in [
        ("KEY", "abc", "***3"),
        ("OTHER_KEY", "x", "***"),
        ("KEY", "", ""),
        ("USER", "hunter2", "***2"),
        ("log", "with hunter2hunter2 and abc", "with *** and abc"),
        (
            "DATABASE_URL",
            "postgres://me:pa55word@host/db",
            "postgres://me:***4@host/db",
        ),
        ("USER", "somebody", "somebody"),
        ("OTHER_URL", "http://me:pw@host:80", "http://me:***@host:80"),
    ] {
        assert_eq!(secrets.shown(name, value), shown, "{name}={value}");
    }
    let text = "é hunter2 é";
    assert_eq!(secrets.starred(text), "é ******* é");
    assert_eq!(secrets.starred(text).len(), text.len());
}

#[test]
fn documents_keep_their_shape() {
    let mut secrets = Secrets::default();
    secrets.learn("hunter2");
    let mut document = json!({
        "start": ["serve", "--token", "hunter2"],
        "env": [["TOKEN", "hunter2"], ["PIN_KEY", "12"], ["USER", "me"]],
        "parameters": { "password": 4711, "users": 7 },
        "hunter2": null,
    });
    secrets.mask(&mut document, Names::Tell);
    let expected = json!({
        "start": ["serve", "--token", "***"],
        "env": [["TOKEN", "***"], ["PIN_KEY", "***"], ["USER", "me"]],
        "parameters": { "password": "***", "users": 7 },
        "hunter2": null,
    });
    assert_eq!(document, expected);
}
