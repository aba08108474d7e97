// Internal: responses. The object is a handle to the answer that the host keeps; what is asked for is made then, once.
import { Selection } from 'k6/html';
import { put } from 'plimsoll/internal/waiting';

// Makes a request; `k6/http`, which imports this module, sets it.
let request;

export function useRequest(make) {
  request = make;
}

const prototype = $host.responsePrototype;

export function Response() {
  throw new TypeError('a Response is made by a request only');
}
Response.prototype = prototype;
Object.defineProperty(prototype, 'constructor', { value: Response, configurable: true, writable: true });

// Defines a property that the host makes when it is first read, and that a script may replace.
function lazy(name, make) {
  const keep = (response, value) =>
    Object.defineProperty(response, name, { value, writable: true, enumerable: true, configurable: true });
  Object.defineProperty(prototype, name, {
    configurable: true,
    enumerable: true,
    get() {
      const value = make(this);
      keep(this, value);
      return value;
    },
    set(value) {
      keep(this, value);
    },
  });
}

for (const name of ['body', 'headers', 'cookies', 'timings', 'url', 'error', 'error_code', 'status_text', 'proto']) {
  lazy(name, (response) => $host.read(response, name));
}
for (const name of ['remote_ip', 'remote_port', 'tls_version', 'tls_cipher_suite', 'request']) {
  lazy(name, (response) => $host.read(response, name));
}
lazy('ocsp', () => ({ produced_at: 0, this_update: 0, next_update: 0, revoked_at: 0, revocation_reason: '', status: 'unknown' }));

// What was parsed of a response is kept beside it, not on it: scripts list the properties of responses.
const parsed = new WeakMap();
const pages = new WeakMap();

function json(path) {
  if (path !== undefined) return $host.field(this, String(path));
  let value = parsed.get(this);
  if (value === undefined) {
    value = $host.json(this);
    if (value !== null && typeof value === 'object') parsed.set(this, value);
  }
  return value;
}

function html(selector) {
  let page = pages.get(this);
  if (page === undefined) {
    const nodes = $host.page(this);
    if (nodes === undefined) throw new Error("the response has no body: ask for one with responseType: 'text'");
    page = new Selection(nodes);
    pages.set(this, page);
  }
  return selector === undefined ? page : page.find(selector);
}

function submitForm({ formSelector = 'form', fields = {}, submitSelector = '[type="submit"]', params } = {}) {
  const form = this.html().find(formSelector).first();
  if (form.size() === 0) throw new Error(`no form is found by '${formSelector}' in the response of ${$host.shownUrl(this.url)}`);
  const values = form.serializeObject();
  const submit = form.find(submitSelector).first();
  const name = submit.attr('name');
  if (name !== undefined) put(values, name, submit.val() ?? '');
  Object.assign(values, fields);
  const method = (form.attr('method') ?? 'GET').toUpperCase();
  const address = $host.resolve(this.url, form.attr('action') ?? '');
  if (method !== 'GET') return request(method, address, values, params);
  return request('GET', withQuery(address, values), null, params);
}

function withQuery(address, values) {
  const pairs = [];
  for (const name of Object.keys(values).sort()) {
    for (const value of [values[name]].flat()) pairs.push(name, String(value));
  }
  const bare = address.split('#', 1)[0].split('?', 1)[0];
  return pairs.length === 0 ? bare : `${bare}?${$host.form(pairs)}`;
}

function clickLink({ selector = 'a[href]', params } = {}) {
  const link = this.html().find(selector).first();
  if (link.size() === 0) throw new Error(`no link is found by '${selector}' in the response of ${$host.shownUrl(this.url)}`);
  const target = link.attr('href');
  if (target === undefined) throw new Error(`the element found by '${selector}' has no href`);
  return request('GET', $host.resolve(this.url, target), null, params);
}

function toJSON() {
  const { status, status_text, url, body, headers, cookies, timings, error, error_code, proto, remote_ip, remote_port } = this;
  return { status, status_text, url, body, headers, cookies, timings, error, error_code, proto, remote_ip, remote_port };
}

Object.assign(prototype, { json, html, submitForm, clickLink });
Object.defineProperty(prototype, 'toJSON', { value: toJSON });
