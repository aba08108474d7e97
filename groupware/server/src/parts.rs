//! The parts of a server, created from the configuration.

use std::collections::HashSet;
use std::sync::Arc;

use groupware_auth::{Lifetime, secret};
use groupware_content::ContentStore;
use groupware_data::Data;
use groupware_documents::UploadId;
use groupware_front_admin::AdminFront;
use groupware_front_domino::{Domino, Reservations};
use groupware_front_lookup::{Access, Lookup};
use groupware_front_pages::Pages;
use groupware_front_tus::{OpenUploads, Tus, key};
use groupware_http::{BodyLimits, Cookies, Gate, Hosts, Metrics, RequestLog, Streams};
use groupware_jobs::{ContentSweep, SweepObserver};
use groupware_objects::ObjectStorage;
use groupware_people::hash_secret;
use groupware_process::LogMetrics;
use groupware_runtime::random;
use groupware_service::{Service, Settings};
use groupware_store::Store;
use prometheus_client::collector::Collector;

use crate::config::Config;
use crate::error::ServeError;
use crate::object_metrics::ObjectMetrics;

/// The inputs of the fronts and jobs.
pub(crate) struct Parts {
    pub(crate) service: Service,
    pub(crate) content: ContentStore,
    pub(crate) objects: Option<Arc<ObjectStorage>>,
    streams: Arc<Streams>,
    uploads: Arc<OpenUploads>,
    pub(crate) metrics: Arc<Metrics>,
    cookies: Cookies,
    form_key: [u8; 32],
    pub(crate) request_log: Arc<RequestLog>,
}

impl Parts {
    pub(crate) fn new(
        config: &Config,
        (store, content, objects): (Store, ContentStore, Option<Arc<ObjectStorage>>),
        admin_token: &str,
        cores: usize,
    ) -> Result<Self, ServeError> {
        let mut others: Vec<Box<dyn Collector>> = vec![Box::new(LogMetrics)];
        if let Some(shelf) = &objects {
            others.push(Box::new(ObjectMetrics(Arc::clone(shelf))));
        }
        let metrics = Arc::new(Metrics::new(store.clone(), others));
        let log = &config.log;
        let start = u32::from_le_bytes(random::bytes());
        let form_key = secret::key(&store, "plimsoll 2026 forms of pages");
        Ok(Self {
            form_key: form_key?,
            request_log: Arc::new(RequestLog::new(log.requests, log.slow_request, start)),
            service: Service::start(store, settings(config, admin_token, cores))?,
            uploads: Arc::new(OpenUploads::new(content.clone())),
            content,
            objects,
            streams: Arc::new(Streams::new()),
            metrics,
            cookies: Cookies {
                // Plain HTTP that other machines can reach is behind a proxy with TLS.
                are_secure: config.tls.is_some()
                    || config.allow_plain_exposed && !config.plain_cookies,
            },
        })
    }

    pub(crate) fn gate(&self, config: &Config) -> Gate {
        let limits = BodyLimits {
            most: config.limits.body_bytes,
            within: config.limits.body_timeout,
            work_within: config.limits.request_timeout,
        };
        let at_once = config.requests_at_once.or(config.http_threads);
        let at_once = at_once.unwrap_or(config.limits.requests_at_once).max(1);
        Gate::new(
            self.service.clone(),
            limits,
            at_once,
            (Arc::clone(&self.streams), self.content.folder().to_owned()),
            (Arc::clone(&self.metrics), Arc::clone(&self.request_log)),
            hosts(config),
        )
    }

    pub(crate) fn domino(&self, config: &Config) -> Domino {
        Domino {
            service: self.service.clone(),
            cookies: self.cookies,
            content: self.content.clone(),
            streams: Arc::clone(&self.streams),
            set_aside: Reservations::default(),
            attachment_bytes: config.limits.attachment_bytes,
            body_within: config.limits.body_timeout,
            message_within: config.limits.mail_body_timeout,
        }
    }

    pub(crate) fn tus(&self, config: &Config) -> Tus {
        Tus {
            service: self.service.clone(),
            content: self.content.clone(),
            streams: Arc::clone(&self.streams),
            uploads: Arc::clone(&self.uploads),
            attachment_bytes: config.limits.attachment_bytes,
            body_within: config.limits.body_timeout,
            lifetime_s: upload_lifetime_s(config),
        }
    }

    pub(crate) fn pages(&self, config: &Config) -> Pages {
        Pages {
            service: self.service.clone(),
            content: self.content.clone(),
            streams: Arc::clone(&self.streams),
            cookies: self.cookies,
            form_key: self.form_key,
            message_within: config.limits.mail_body_timeout,
        }
    }

    pub(crate) fn lookup(&self, config: &Config) -> Lookup {
        Lookup::new(
            self.service.clone(),
            Access::new(config.lookup),
            config.lookup_layout,
            config.limits.lookup_per_s,
        )
    }

    pub(crate) fn admin(&self, config: &Config) -> AdminFront {
        AdminFront {
            service: self.service.clone(),
            content: self.content.clone(),
            streams: Arc::clone(&self.streams),
            mailbox_pad_bytes: config.mailbox_pad_bytes,
            body_bytes: config.limits.admin_body_bytes,
            within: config.limits.admin_timeout,
        }
    }

    pub(crate) fn content_sweep(&self, config: &Config) -> ContentSweep<Swept> {
        let observer = Swept {
            metrics: Arc::clone(&self.metrics),
            uploads: Arc::clone(&self.uploads),
        };
        ContentSweep::new(
            self.service.clone(),
            self.content.clone(),
            (upload_lifetime_s(config), config.limits.sweep_interval),
            observer,
        )
    }
}

/// Counts failed sweeps, and drops expired uploads from the open ones.
pub(crate) struct Swept {
    metrics: Arc<Metrics>,
    uploads: Arc<OpenUploads>,
}

impl SweepObserver for Swept {
    fn failed(&self) {
        self.metrics.sweep_failures.inc();
    }

    fn forgotten(&self, mailbox: &str, id: &UploadId) {
        self.uploads.forget(&key(mailbox, id));
    }

    fn under_way(&self, all: &HashSet<String>) {
        self.uploads.keep_only(all);
    }
}

fn settings(config: &Config, admin_token: &str, cores: usize) -> Settings {
    let limits = &config.limits;
    let auth = groupware_auth::Settings {
        domain: config.domain.clone(),
        organization: config.organization.clone(),
        users: limits.users,
        // The other cores serve other requests.
        hashes_at_once: (cores / 2).max(1),
        sessions: limits.sessions,
        is_shared: matches!(config.data, Data::Postgres { .. }),
        session_lifetime: Lifetime {
            idle: limits.session_idle,
            total: limits.session_lifetime,
        },
        sign_in_failures: limits.sign_in_failures,
        sign_in_forgiveness: limits.sign_in_forgiveness,
        admin_token: hash_secret(admin_token),
    };
    Settings {
        auth,
        mail_quota_bytes: config.mail_quota_bytes,
        quota_bytes: limits.quota_bytes,
    }
}

/// A server that only its own machine can reach is addressed by the local names only.
fn hosts(config: &Config) -> Hosts {
    if config.hosts.is_empty() && !config.listen.ip().is_loopback() {
        return Hosts::any();
    }
    let names = config.hosts.iter().chain([&config.domain]);
    Hosts::only(names.cloned())
}

fn upload_lifetime_s(config: &Config) -> i64 {
    i64::try_from(config.limits.upload_lifetime.as_secs()).unwrap_or(i64::MAX)
}
