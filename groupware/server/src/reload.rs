//! Which changes of a configuration take effect at run time, and which after a restart.

use crate::config::Config;

/// The result of reading the configuration again.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Reloaded {
    /// The changed settings that are in effect, by their names in the configuration file.
    pub changed: Vec<&'static str>,
    /// The settings that take effect after a restart.
    pub needs_restart: Vec<&'static str>,
}

impl Reloaded {
    /// Returns the differences of the new configuration. Certificates aren't compared: their files
    /// may have changed under the same names.
    pub(crate) fn between(old: &Config, new: &Config) -> Self {
        let (log, next) = (&old.log, &new.log);
        let of = |names: &[(&'static str, bool)]| {
            let differing = names.iter().filter(|(_, differs)| *differs);
            differing.map(|(name, _)| *name).collect()
        };
        Self {
            changed: of(&[
                ("log", log.requests != next.requests),
                ("slow-request", log.slow_request != next.slow_request),
                ("slow-commit", log.slow_commit != next.slow_commit),
                ("quota", old.limits.quota_bytes != new.limits.quota_bytes),
                ("mail-quota", old.mail_quota_bytes != new.mail_quota_bytes),
                ("trust-client", old.trusted != new.trusted),
                ("proxy", old.proxies != new.proxies),
            ]),
            needs_restart: of(&[
                ("log's format", log.format != next.format),
                ("listen", old.listen != new.listen),
                ("data", old.data != new.data),
                ("content", old.objects != new.objects),
                ("http-threads", old.http_threads != new.http_threads),
                (
                    "requests-at-once",
                    old.requests_at_once != new.requests_at_once,
                ),
                ("port-file", old.port_file != new.port_file),
                (
                    "admin-token-file",
                    old.admin_token_file != new.admin_token_file,
                ),
                ("first-admin", old.first_admin != new.first_admin),
                ("keep-changes", old.keep_changes != new.keep_changes),
                ("domain", old.domain != new.domain),
                ("organization", old.organization != new.organization),
                ("lookup", old.lookup != new.lookup),
                ("lookup-layout", old.lookup_layout != new.lookup_layout),
                ("smtp-listen", old.smtp_listen != new.smtp_listen),
                ("mail-auth", old.mail_auth != new.mail_auth),
                ("resolver", old.resolvers != new.resolvers),
                (
                    "submission-listen",
                    old.submission_listen != new.submission_listen,
                ),
                (
                    "mailbox-pad",
                    old.mailbox_pad_bytes != new.mailbox_pad_bytes,
                ),
                ("tls-cert", old.tls.is_some() != new.tls.is_some()),
                (
                    "expose-without-tls",
                    old.allow_plain_exposed != new.allow_plain_exposed,
                ),
                ("plain-cookies", old.plain_cookies != new.plain_cookies),
                ("host", old.hosts != new.hosts),
                (
                    "proxy-protocol",
                    old.proxies_say != new.proxies_say
                        || old.smtp_limits.proxies_say != new.smtp_limits.proxies_say,
                ),
            ]),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use groupware_data::Data;

    #[test]
    fn what_changed_is_told_by_its_name() {
        let old = Config::new(Data::Memory);
        assert_eq!(Reloaded::between(&old, &old.clone()), Reloaded::default());
        let mut new = old.clone();
        new.log.slow_commit = Duration::ZERO;
        new.limits.quota_bytes = 1;
        new.domain = "example.org".into();
        let expected = Reloaded {
            changed: vec!["slow-commit", "quota"],
            needs_restart: vec!["domain"],
        };
        assert_eq!(Reloaded::between(&old, &new), expected);
    }
}
