//! The functions of the host: what modules in JavaScript call.

use std::rc::Rc;

use rquickjs::prelude::Opt;
use rquickjs::{Array, Class, Ctx, Exception, Function, IntoJs, Object, Result, Value};

use crate::event::{Event, Level, MetricKind};
use crate::shared::Shared;
use crate::turn::Facts;

use super::digest::Algorithm;
use super::encoding::{self, Field};
use super::pages::NodeList;
use super::response::{self, Response};
use super::{address, jar, pages, request, values};

/// The most random bytes of one call.
const MOST_RANDOM: f64 = 16_777_216.0;

/// Adds the functions of the API to the object of the host.
pub(crate) fn install<'js>(ctx: &Ctx<'js>, host: &Object<'js>, shared: &Rc<Shared>) -> Result<()> {
    let host = Host { ctx, host, shared };
    host.events()?;
    host.facts()?;
    host.tags()?;
    host.responses()?;
    host.cookies()?;
    host.bodies()?;
    host.texts()
}

struct Host<'a, 'js> {
    ctx: &'a Ctx<'js>,
    host: &'a Object<'js>,
    shared: &'a Rc<Shared>,
}

impl<'js> Host<'_, 'js> {
    fn add<P>(
        &self,
        name: &str,
        f: impl rquickjs::function::IntoJsFunc<'js, P> + 'js,
    ) -> Result<()> {
        self.host
            .set(name, Function::new(self.ctx.clone(), f)?.with_name(name)?)
    }

    fn events(&self) -> Result<()> {
        let own = Rc::clone(self.shared);
        self.add(
            "check",
            move |ctx: Ctx<'js>, name: String, passed: bool, site: Opt<u32>| {
                let site = site.0.unwrap_or_else(|| own.take_site(&ctx));
                own.record(Event::Check { site, name, passed });
            },
        )?;
        let own = Rc::clone(self.shared);
        self.add(
            "metric",
            move |name: String, kind: String, value: f64, time: bool| {
                let kind = match kind.as_str() {
                    "counter" => MetricKind::Counter,
                    "gauge" => MetricKind::Gauge,
                    "rate" => MetricKind::Rate,
                    _ => MetricKind::Trend,
                };
                own.record(Event::Metric {
                    name,
                    kind,
                    time,
                    value,
                });
            },
        )?;
        self.ends()
    }

    /// Groups, the log, and the end of the test.
    fn ends(&self) -> Result<()> {
        self.add("declare", |_name: String, _kind: String, _time: bool| {})?;
        let own = Rc::clone(self.shared);
        self.add("group", move |name: String, begins: bool| {
            own.record(Event::Group { name, begins })
        })?;
        let own = Rc::clone(self.shared);
        self.add("log", move |ctx: Ctx<'js>, level: String, text: String| {
            let level = match level.as_str() {
                "debug" => Level::Debug,
                "warn" => Level::Warn,
                "error" => Level::Error,
                _ => Level::Info,
            };
            let site = own.take_site(&ctx);
            own.record(Event::Log { level, text, site });
        })?;
        let own = Rc::clone(self.shared);
        self.add("abort", move |reason: String| {
            own.record(Event::Interrupt { reason })
        })?;
        let own = Rc::clone(self.shared);
        self.add("failTest", move |reason: String| {
            own.record(Event::Fail { reason })
        })
    }

    fn facts(&self) -> Result<()> {
        let own = Rc::clone(self.shared);
        self.add("fact", move |ctx: Ctx<'js>, name: String| {
            fact(&ctx, &own, &name)
        })?;
        let own = Rc::clone(self.shared);
        self.add("options", move |ctx: Ctx<'js>| {
            ctx.json_parse(own.program.options().to_string())
        })?;
        let own = Rc::clone(self.shared);
        self.add("variable", move |name: String| {
            own.program.environment().0.get(&name).cloned()
        })?;
        let own = Rc::clone(self.shared);
        self.add("seed", move |seed: f64| own.reseed(seed.to_bits()))?;
        let own = Rc::clone(self.shared);
        self.add("randomBytes", move |ctx: Ctx<'js>, count: f64| {
            if !(0.0..=MOST_RANDOM).contains(&count) {
                return Err(Exception::throw_range(
                    &ctx,
                    "randomBytes gives 0 to 16777216 bytes",
                ));
            }
            let count = count as usize;
            let mut bytes = Vec::with_capacity(count + 8);
            while bytes.len() < count {
                bytes.extend_from_slice(&own.random_bits().to_le_bytes());
            }
            bytes.truncate(count);
            values::buffer(&ctx, bytes)
        })?;
        let own = Rc::clone(self.shared);
        self.add("onlyInInit", move |ctx: Ctx<'js>, what: String| {
            if own.initialising.get() {
                return Ok(());
            }
            Err(Exception::throw_message(&ctx, &format!("{what} must be called at the top of a module, not within a function of an iteration")))
        })
    }

    fn tags(&self) -> Result<()> {
        let own = Rc::clone(self.shared);
        self.add("tag", move |name: String| {
            let found = own.api.read(own.user.get(), |user| {
                user.tags
                    .iter()
                    .find(|(tag, _)| *tag == name)
                    .map(|(_, value)| value.clone())
            });
            found.flatten()
        })?;
        let own = Rc::clone(self.shared);
        self.add("setTag", move |name: String, value: Option<String>| {
            own.api.with(own.user.get(), |user| {
                user.tags.retain(|(tag, _)| *tag != name);
                user.tags.extend(value.map(|value| (name, value)));
            });
        })?;
        let own = Rc::clone(self.shared);
        self.add("tagNames", move || {
            let names: Option<Vec<String>> = own.api.read(own.user.get(), |user| {
                user.tags.iter().map(|(name, _)| name.clone()).collect()
            });
            names.unwrap_or_default()
        })
    }

    fn responses(&self) -> Result<()> {
        let prototype = Class::<Response>::prototype(self.ctx)?;
        self.host.set("responsePrototype", prototype)?;
        self.add(
            "read",
            |ctx: Ctx<'js>, of: Class<'js, Response>, part: String| {
                response::read(&ctx, &of, &part)
            },
        )?;
        self.add("json", |ctx: Ctx<'js>, of: Class<'js, Response>| {
            response::json(&ctx, &of)
        })?;
        self.add(
            "field",
            |ctx: Ctx<'js>, of: Class<'js, Response>, path: String| {
                response::field(&ctx, &of, &path)
            },
        )?;
        let own = Rc::clone(self.shared);
        self.add(
            "expect",
            move |ctx: Ctx<'js>, given: Value<'js>| -> Result<()> {
                let expected = Some(request::ranges(&ctx, &given)?);
                if own.initialising.get() {
                    *own.api.expected.borrow_mut() = expected;
                } else {
                    own.api
                        .with(own.user.get(), |user| user.expected = expected);
                }
                Ok(())
            },
        )?;
        let own = Rc::clone(self.shared);
        self.add("html", move |ctx: Ctx<'js>, text: String| {
            pages::parse(&ctx, &own, &text)
        })?;
        let own = Rc::clone(self.shared);
        self.add(
            "page",
            move |ctx: Ctx<'js>, of: Class<'js, Response>| -> Result<Option<NodeList>> {
                let response = of.borrow();
                let text = response.page_text();
                text.map(|text| pages::parse(&ctx, &own, text)).transpose()
            },
        )
    }

    fn cookies(&self) -> Result<()> {
        let own = Rc::clone(self.shared);
        self.add("newJar", move || own.api.new_jar(own.initialising.get()))?;
        let own = Rc::clone(self.shared);
        self.add("cookiesFor", move |ctx: Ctx<'js>, id: u32, url: String| {
            jar::cookies_for(&ctx, &own, id, &url)
        })?;
        let own = Rc::clone(self.shared);
        self.add(
            "setCookie",
            move |ctx: Ctx<'js>,
                  id: u32,
                  url: String,
                  name: String,
                  value: String,
                  settings: Option<Object<'js>>| {
                jar::set(&ctx, &own, id, (&url, &name, &value), settings.as_ref())
            },
        )?;
        let own = Rc::clone(self.shared);
        self.add(
            "removeCookies",
            move |ctx: Ctx<'js>, id: u32, url: String, name: Opt<String>| {
                jar::remove(&ctx, &own, id, &url, name.0.as_deref())
            },
        )
    }

    fn bodies(&self) -> Result<()> {
        self.add("form", |flat: Vec<String>| address::form(&flat))?;
        self.add("formPairs", |text: String| address::from_form(&text))?;
        self.add(
            "multipart",
            |ctx: Ctx<'js>, boundary: String, fields: Array<'js>| {
                let fields: Result<Vec<Field>> = fields
                    .iter::<Array<'js>>()
                    .map(|field| read_field(&ctx, &field?))
                    .collect();
                values::buffer(&ctx, encoding::multipart(&boundary, &fields?))
            },
        )?;
        self.add(
            "address",
            |ctx: Ctx<'js>, text: String, base: Option<String>| -> Result<Vec<String>> {
                Ok(values::refused(&ctx, address::parts(&text, base.as_deref()))?.into())
            },
        )?;
        self.add(
            "addressWith",
            |ctx: Ctx<'js>, href: String, part: String, value: String| -> Result<Vec<String>> {
                Ok(values::refused(&ctx, address::with(&href, &part, &value))?.into())
            },
        )?;
        self.add("shownUrl", |url: String| address::shown(&url))?;
        self.add(
            "resolve",
            |ctx: Ctx<'js>, base: String, reference: String| {
                values::refused(&ctx, address::resolve(&base, &reference))
            },
        )
    }

    fn texts(&self) -> Result<()> {
        self.add(
            "digest",
            |ctx: Ctx<'js>, algorithm: String, parts: Array<'js>, form: String| {
                let hash = algorithm_of(&ctx, &algorithm)?;
                let parts = all_bytes(&ctx, &parts)?;
                let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
                written(&ctx, hash.digest(&parts), &form)
            },
        )?;
        self.add(
            "hmac",
            |ctx: Ctx<'js>, algorithm: String, key: Value<'js>, parts: Array<'js>, form: String| {
                let hash = algorithm_of(&ctx, &algorithm)?;
                let key = values::bytes(&ctx, &key)?;
                let parts = all_bytes(&ctx, &parts)?;
                let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
                written(&ctx, hash.hmac(&key, &parts), &form)
            },
        )?;
        self.add(
            "base64",
            |ctx: Ctx<'js>, data: Value<'js>, alphabet: String| {
                values::refused(
                    &ctx,
                    encoding::to_base64(&values::bytes(&ctx, &data)?, &alphabet),
                )
            },
        )?;
        self.add(
            "unbase64",
            |ctx: Ctx<'js>, text: String, alphabet: String, as_text: bool| {
                let bytes = values::refused(&ctx, encoding::from_base64(&text, &alphabet))?;
                if as_text {
                    return String::from_utf8_lossy(&bytes).as_ref().into_js(&ctx);
                }
                values::buffer(&ctx, bytes)
            },
        )?;
        self.add("hex", |ctx: Ctx<'js>, data: Value<'js>| -> Result<String> {
            Ok(hex::encode(values::bytes(&ctx, &data)?))
        })?;
        self.add(
            "utf8",
            |ctx: Ctx<'js>, data: Value<'js>| -> Result<String> {
                Ok(String::from_utf8_lossy(&values::bytes(&ctx, &data)?).into_owned())
            },
        )?;
        self.add("bytes", |ctx: Ctx<'js>, text: String| {
            values::buffer(&ctx, text.into_bytes())
        })
    }
}

fn fact<'js>(ctx: &Ctx<'js>, shared: &Shared, name: &str) -> Result<Value<'js>> {
    let unknown = Facts::default();
    let read = |facts: &Facts| fact_of(ctx, facts, name);
    shared.fact(read).unwrap_or_else(|| read(&unknown))
}

fn fact_of<'js>(ctx: &Ctx<'js>, facts: &Facts, name: &str) -> Result<Value<'js>> {
    let count = |number: u64| (number as f64).into_js(ctx);
    match name {
        "vu_in_test" => count(facts.vu_in_test),
        "vu_in_instance" => count(facts.vu_in_instance),
        "vu_iteration_in_instance" => count(facts.iteration_of_user),
        "vu_iteration_in_scenario" => count(facts.iteration_in_scenario),
        "iteration_in_instance" => count(facts.iteration_in_instance),
        "iteration_in_test" => count(facts.iteration_in_test),
        "iterations_completed" => count(facts.iterations_completed),
        "iterations_interrupted" => count(facts.iterations_interrupted),
        "vus_active" => count(facts.vus_active),
        "vus_initialized" => count(facts.vus_initialized),
        "scenario" => facts.scenario.as_str().into_js(ctx),
        "executor" => facts.executor.as_str().into_js(ctx),
        "start_ms" => facts.start_ms.into_js(ctx),
        "progress" => facts.progress.into_js(ctx),
        other => Err(Exception::throw_type(
            ctx,
            &format!("unknown fact '{other}'"),
        )),
    }
}

fn algorithm_of(ctx: &Ctx<'_>, name: &str) -> Result<Algorithm> {
    Algorithm::named(name).ok_or_else(|| {
        Exception::throw_type(
            ctx,
            &format!("unknown hash '{name}': use md4, md5, sha1, sha256, sha384, sha512, sha512_224, sha512_256, or ripemd160"),
        )
    })
}

fn all_bytes<'js>(ctx: &Ctx<'js>, parts: &Array<'js>) -> Result<Vec<Vec<u8>>> {
    parts
        .iter::<Value<'js>>()
        .map(|part| values::bytes(ctx, &part?))
        .collect()
}

fn written<'js>(ctx: &Ctx<'js>, hash: Vec<u8>, form: &str) -> Result<Value<'js>> {
    match values::refused(ctx, encoding::written(&hash, form))? {
        Some(text) => text.into_js(ctx),
        None => values::buffer(ctx, hash),
    }
}

/// Reads a field of a multipart body: `[name, data]` or `[name, data, file name, type]`.
fn read_field<'js>(ctx: &Ctx<'js>, field: &Array<'js>) -> Result<Field> {
    let file = match field.get::<Option<String>>(2)? {
        Some(name) => Some((name, field.get::<String>(3)?)),
        None => None,
    };
    Ok(Field {
        name: field.get(0)?,
        data: values::bytes(ctx, &field.get(1)?)?,
        file,
    })
}
