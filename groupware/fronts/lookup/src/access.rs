//! The configured access to registrations.
//!
//! The original services need no credentials. This one requires them unless configured as `open`.

use std::str::FromStr;

/// The clients that may change registrations. All clients may read them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookupAccess {
    /// Any client.
    Open,
    /// Users, each their own records, and bearers of the admin token.
    Users,
    /// The lookup service is disabled.
    Off,
}

/// Their names in settings, in the order of the variants.
const NAMES: [(&str, LookupAccess); 3] = [
    ("open", LookupAccess::Open),
    ("users", LookupAccess::Users),
    ("off", LookupAccess::Off),
];

impl FromStr for LookupAccess {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = NAMES.iter().find(|(name, _)| *name == text);
        found
            .map(|(_, access)| *access)
            .ok_or_else(|| "one of open, users, off".to_owned())
    }
}

/// The configured access; by default, users.
#[derive(Debug, Clone, Copy)]
pub struct Access(LookupAccess);

impl Access {
    /// Takes the setting. The default is users: an address proves nothing, since any program may forward connections.
    pub fn new(set: Option<LookupAccess>) -> Self {
        Self(set.unwrap_or(LookupAccess::Users))
    }

    /// Returns true if the lookup service is disabled.
    pub fn is_off(self) -> bool {
        self.0 == LookupAccess::Off
    }

    /// Returns true if any client may register.
    pub(crate) fn is_open(self) -> bool {
        self.0 == LookupAccess::Open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_register_unless_it_is_set_otherwise() {
        for (set, is_open, is_off) in [
            (None, false, false),
            (Some("users"), false, false),
            (Some("open"), true, false),
            (Some("off"), false, true),
        ] {
            let access = Access::new(set.map(|name| name.parse().unwrap()));
            assert_eq!(
                (access.is_open(), access.is_off()),
                (is_open, is_off),
                "{set:?}"
            );
        }
        assert!("everybody".parse::<LookupAccess>().is_err());
    }
}
