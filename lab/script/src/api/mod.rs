//! The API that scripts import: the modules of k6, known libraries, and `plimsoll`, each a file of JavaScript in
//! `modules/`, and the functions of the host that they call.
//!
//! A function that needs the lab returns an operation: `$op('request', [method, url, body, params, name, type])`,
//! `$op('batch', [request, …])`, `$op('wait', microseconds)`. All others end at once.
//!
//! The functions of the host, on the object `$host`:
//!
//! | events | |
//! |---|---|
//! | `check(name, passed, site)`, `group(name, begins)` | a check passed or failed; a group begins or ends |
//! | `metric(name, kind, value, isTime)`, `declare(name, kind, isTime)` | a value of a metric; a metric exists |
//! | `log(level, text)` | a line of the log |
//! | `abort(reason)`, `failTest(reason)` | the test ends; the test fails at its end |
//! | **facts** | |
//! | `fact(name)`, `options()`, `variable(name)` | a field of `Facts`; the options; a variable of the environment |
//! | `tag(name)`, `setTag(name, value)`, `tagNames()` | tags of the user |
//! | `seed(number)`, `randomBytes(count)` | the user's random stream |
//! | `initialise(on)`, `onlyInInit(what)` | whether initialisers run; throws if they don't |
//! | **HTTP** | |
//! | `responsePrototype`, `read(response, part)`, `json(response)`, `field(response, path)` | responses |
//! | `expect(ranges)` | statuses that don't count as failures |
//! | `newJar()`, `cookiesFor(jar, url)`, `setCookie(jar, url, name, value, settings)`, `removeCookies(jar, url, name)` | cookies |
//! | `form(flat)`, `formPairs(text)`, `multipart(boundary, fields)` | bodies |
//! | `address(text, base)`, `addressWith(href, part, value)`, `resolve(base, reference)`, `shownUrl(url)` | addresses |
//! | **texts and bytes** | |
//! | `digest(algorithm, parts, form)`, `hmac(algorithm, key, parts, form)` | hashes |
//! | `base64(data, alphabet)`, `unbase64(text, alphabet, asText)`, `hex(data)`, `utf8(data)`, `bytes(text)` | encodings |
//! | `html(text)`, `page(response)` | a document: a list of nodes |

mod address;
mod catalogue;
mod cookies;
mod digest;
mod encoding;
mod host;
mod html;
mod jar;
mod json_path;
mod pages;
mod request;
mod response;
mod state;
mod values;

pub(crate) use catalogue::{modules, refused, resolve};
pub(crate) use host::install;
pub(crate) use request::{hand_over, request};
pub(crate) use response::responses;
pub(crate) use state::{Settings, State};
