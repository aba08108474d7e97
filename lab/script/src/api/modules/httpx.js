// The library at https://jslib.k6.io/httpx: sessions with an address, headers, and tags of all their requests.
import http from 'k6/http';

const merged = (a, b) => (a === undefined ? b : b === undefined ? a : { ...a, ...b });

export class Request {
  constructor(method, url, body, params) {
    this.method = method;
    this.url = url;
    this.body = body;
    this.params = params;
  }
}

const kind = (method) =>
  class extends Request {
    constructor(url, body, params) {
      super(method, url, body, params);
    }
  };

export const Get = kind('GET');
export const Post = kind('POST');
export const Put = kind('PUT');
export const Patch = kind('PATCH');
export const Delete = kind('DELETE');
export const Head = kind('HEAD');
export const Options = kind('OPTIONS');
export const Trace = kind('TRACE');

export class Httpx {
  constructor({ baseURL = '', headers = {}, tags = {}, timeout, ...params } = {}) {
    this.baseURL = baseURL;
    this.headers = { ...headers };
    this.tags = { ...tags };
    this.timeout = timeout;
    this.params = params;
  }

  setBaseUrl(url) {
    this.baseURL = url;
  }

  addHeader(name, value) {
    this.headers[name] = value;
  }

  addHeaders(headers) {
    Object.assign(this.headers, headers);
  }

  clearHeader(name) {
    delete this.headers[name];
  }

  addTag(name, value) {
    this.tags[name] = value;
  }

  addTags(tags) {
    Object.assign(this.tags, tags);
  }

  clearTag(name) {
    delete this.tags[name];
  }

  #address(url) {
    const text = String(url);
    return /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? url : this.baseURL + text;
  }

  #params(own) {
    return {
      ...this.params,
      timeout: this.timeout,
      ...own,
      headers: merged(this.headers, own?.headers ?? undefined),
      tags: merged(this.tags, own?.tags ?? undefined),
    };
  }

  request(method, url, body, params) {
    return http.request(method, this.#address(url), body, this.#params(params));
  }

  asyncRequest(method, url, body, params) {
    return http.asyncRequest(method, this.#address(url), body, this.#params(params));
  }

  batch(requests, params) {
    return http.batch(
      requests.map((one) => {
        const request = one instanceof Request ? one : new Request('GET', one);
        const own = { ...params, ...request.params };
        own.headers = merged(params?.headers, request.params?.headers);
        own.tags = merged(params?.tags, request.params?.tags);
        return [request.method, this.#address(request.url), request.body, this.#params(own)];
      }),
    );
  }
}

for (const method of ['get', 'post', 'put', 'patch', 'delete', 'head', 'options', 'trace']) {
  Object.defineProperty(Httpx.prototype, method, {
    value(url, body, params) {
      return this.request(method.toUpperCase(), url, body, params);
    },
    writable: true,
    configurable: true,
  });
}

export default Object.freeze({ Httpx, Request, Get, Post, Put, Patch, Delete, Head, Options, Trace });
