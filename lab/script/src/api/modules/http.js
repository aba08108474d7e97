// The module `k6/http`: requests. Each call returns one operation; the host builds the request from it.
import { kindOf } from 'plimsoll/internal/waiting';
import { FileData, encodeBody } from 'plimsoll/internal/body';
import { Response, useRequest } from 'plimsoll/internal/response';

// A URL with the name under which its requests are counted.
class HttpUrl {
  constructor(url, name) {
    this.url = url;
    this.name = name;
  }

  toString() {
    return this.url;
  }
}

export function url(parts, ...values) {
  if (!Array.isArray(parts)) throw new TypeError('http.url is a template tag: http.url`https://shop.example/items/${id}`');
  let text = parts[0];
  let name = parts[0];
  for (let i = 0; i < values.length; i++) {
    text += String(values[i]) + parts[i + 1];
    name += '${}' + parts[i + 1];
  }
  return new HttpUrl(text, name);
}

// The parts of a request in the order in which the host reads them: method, URL, body, params, name, type of the body.
function parts(method, address, body, params) {
  let name;
  if (typeof address !== 'string') {
    if (address instanceof HttpUrl) name = address.name;
    else if (address === null || typeof address !== 'object') {
      throw new TypeError(`the URL of a request is a string, not ${kindOf(address)}`);
    }
    address = String(address);
  }
  if (body === undefined || body === null) return [method, address, null, params, name];
  if (typeof body === 'string') return [method, address, body, params, name];
  const encoded = encodeBody(body);
  return [method, address, encoded.data, params, name, encoded.type];
}

export function request(method, address, body, params) {
  return $op('request', parts(String(method).toUpperCase(), address, body, params));
}

useRequest(request);

export function get(address, params) {
  return $op('request', parts('GET', address, null, params));
}

export function head(address, params) {
  return $op('request', parts('HEAD', address, null, params));
}

export function post(address, body, params) {
  return $op('request', parts('POST', address, body, params));
}

export function put(address, body, params) {
  return $op('request', parts('PUT', address, body, params));
}

export function patch(address, body, params) {
  return $op('request', parts('PATCH', address, body, params));
}

export function del(address, body, params) {
  return $op('request', parts('DELETE', address, body, params));
}

export function options(address, body, params) {
  return $op('request', parts('OPTIONS', address, body, params));
}

export function asyncRequest(method, address, body, params) {
  return $async(request(method, address, body, params));
}

// One request of a batch: a URL, [method, url, body, params], or { method, url, body, params }.
function ofBatch(entry, key) {
  if (typeof entry === 'string' || entry instanceof HttpUrl) return parts('GET', entry, null, undefined);
  if (Array.isArray(entry)) {
    if (entry.length === 1) return parts('GET', entry[0], null, undefined);
    return parts(String(entry[0]).toUpperCase(), entry[1], entry[2], entry[3]);
  }
  if (entry === null || typeof entry !== 'object' || entry.url === undefined) {
    throw new TypeError(
      `request ${key} of the batch is ${kindOf(entry)}: give a URL, [method, url, body, params], or { method, url, body, params }`,
    );
  }
  return parts(String(entry.method ?? 'GET').toUpperCase(), entry.url, entry.body, entry.params);
}

export function batch(requests) {
  if (requests === null || typeof requests !== 'object') {
    throw new TypeError(`http.batch takes an array or an object of requests, not ${kindOf(requests)}`);
  }
  if (Array.isArray(requests)) return $op('batch', requests.map(ofBatch));
  const names = Object.keys(requests);
  return $op(
    'batch',
    names.map((name) => ofBatch(requests[name], name)),
    (answers) => {
      const named = {};
      for (let i = 0; i < names.length; i++) named[names[i]] = answers[i];
      return named;
    },
  );
}

export function file(data, filename, contentType) {
  return new FileData(data, filename, contentType);
}

// Ranges of statuses, both ends included. The host reads `ranges`.
class ExpectedStatuses {
  constructor(ranges) {
    this.ranges = ranges;
    Object.freeze(this);
  }
}

export function expectedStatuses(...statuses) {
  if (statuses.length === 0) throw new TypeError('expectedStatuses takes at least one status, or { min, max }');
  return new ExpectedStatuses(
    Object.freeze(
      statuses.map((status) => {
        if (Number.isInteger(status)) return Object.freeze([status, status]);
        if (status !== null && typeof status === 'object' && Number.isInteger(status.min) && Number.isInteger(status.max)) {
          return Object.freeze([status.min, status.max]);
        }
        throw new TypeError(`expectedStatuses takes whole numbers and objects { min, max }, not ${kindOf(status)}`);
      }),
    ),
  );
}

export function setResponseCallback(callback) {
  if (callback !== null && !(callback instanceof ExpectedStatuses)) {
    throw new TypeError(`setResponseCallback takes what http.expectedStatuses(…) returns, or null, not ${kindOf(callback)}`);
  }
  $host.expect(callback === null ? null : callback.ranges);
}

// The cookies of a user: the host keeps them by user and number of the jar.
export class CookieJar {
  constructor() {
    Object.defineProperty(this, '$id', { value: $host.newJar() });
  }

  cookiesForURL(address) {
    return $host.cookiesFor(this.$id, String(address));
  }

  set(address, name, value, settings) {
    $host.setCookie(this.$id, String(address), String(name), String(value), settings ?? undefined);
    return true;
  }

  clear(address) {
    $host.removeCookies(this.$id, String(address));
  }

  delete(address, name) {
    $host.removeCookies(this.$id, String(address), String(name));
  }
}

const own = Object.freeze(Object.create(CookieJar.prototype, { $id: { value: 0 } }));

export function cookieJar() {
  return own;
}

export { FileData, Response };

export const SSL_3_0 = 'ssl3.0';
export const TLS_1_0 = 'tls1.0';
export const TLS_1_1 = 'tls1.1';
export const TLS_1_2 = 'tls1.2';
export const TLS_1_3 = 'tls1.3';
export const OCSP_STATUS_GOOD = 'good';
export const OCSP_STATUS_REVOKED = 'revoked';
export const OCSP_STATUS_SERVER_FAILED = 'server_failed';
export const OCSP_STATUS_UNKNOWN = 'unknown';
export const OCSP_REASON_UNSPECIFIED = 'unspecified';
export const OCSP_REASON_KEY_COMPROMISE = 'key_compromise';
export const OCSP_REASON_CA_COMPROMISE = 'ca_compromise';
export const OCSP_REASON_AFFILIATION_CHANGED = 'affiliation_changed';
export const OCSP_REASON_SUPERSEDED = 'superseded';
export const OCSP_REASON_CESSATION_OF_OPERATION = 'cessation_of_operation';
export const OCSP_REASON_CERTIFICATE_HOLD = 'certificate_hold';
export const OCSP_REASON_REMOVE_FROM_CRL = 'remove_from_crl';
export const OCSP_REASON_PRIVILEGE_WITHDRAWN = 'privilege_withdrawn';
export const OCSP_REASON_AA_COMPROMISE = 'aa_compromise';

export default Object.freeze({
  get,
  head,
  post,
  put,
  patch,
  del,
  options,
  request,
  asyncRequest,
  batch,
  file,
  url,
  expectedStatuses,
  setResponseCallback,
  cookieJar,
  CookieJar,
  FileData,
  Response,
  SSL_3_0,
  TLS_1_0,
  TLS_1_1,
  TLS_1_2,
  TLS_1_3,
  OCSP_STATUS_GOOD,
  OCSP_STATUS_REVOKED,
  OCSP_STATUS_SERVER_FAILED,
  OCSP_STATUS_UNKNOWN,
  OCSP_REASON_UNSPECIFIED,
  OCSP_REASON_KEY_COMPROMISE,
  OCSP_REASON_CA_COMPROMISE,
  OCSP_REASON_AFFILIATION_CHANGED,
  OCSP_REASON_SUPERSEDED,
  OCSP_REASON_CESSATION_OF_OPERATION,
  OCSP_REASON_CERTIFICATE_HOLD,
  OCSP_REASON_REMOVE_FROM_CRL,
  OCSP_REASON_PRIVILEGE_WITHDRAWN,
  OCSP_REASON_AA_COMPROMISE,
});
