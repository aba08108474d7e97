// `URL` and `URLSearchParams` by the rules of the WHATWG: the host parses, the classes keep the parts. Also the library
// at https://jslib.k6.io/url.
import { kindOf } from 'plimsoll/internal/waiting';

const PARTS = ['href', 'origin', 'protocol', 'username', 'password', 'host', 'hostname', 'port', 'pathname', 'search', 'hash'];

export class URLSearchParams {
  #pairs = [];
  #changed = undefined;

  constructor(init = '') {
    if (init === null || init === undefined) return;
    if (typeof init !== 'object' && typeof init !== 'function') this.#read(String(init));
    else if (typeof init[Symbol.iterator] === 'function') {
      for (const pair of init) {
        const both = [...pair];
        if (both.length !== 2) throw new TypeError('each entry of URLSearchParams is a name and a value');
        this.#pairs.push(both.map(String));
      }
    } else for (const name of Object.keys(init)) this.#pairs.push([name, String(init[name])]);
  }

  #read(text) {
    const flat = $host.formPairs(text.startsWith('?') ? text.slice(1) : text);
    this.#pairs = [];
    for (let i = 0; i < flat.length; i += 2) this.#pairs.push([flat[i], flat[i + 1]]);
  }

  // Ties the parameters to a URL: `changed` is called with their text after each change.
  static $tied(search, changed) {
    const params = new URLSearchParams(search);
    params.#changed = changed;
    return params;
  }

  $reread(search) {
    this.#read(search);
  }

  #done() {
    this.#changed?.(this.toString());
  }

  get size() {
    return this.#pairs.length;
  }

  append(name, value) {
    this.#pairs.push([String(name), String(value)]);
    this.#done();
  }

  delete(name, value) {
    this.#pairs = this.#pairs.filter(([key, held]) => key !== String(name) || (value !== undefined && held !== String(value)));
    this.#done();
  }

  get(name) {
    const found = this.#pairs.find(([key]) => key === String(name));
    return found === undefined ? null : found[1];
  }

  getAll(name) {
    return this.#pairs.filter(([key]) => key === String(name)).map(([, value]) => value);
  }

  has(name, value) {
    return this.#pairs.some(([key, held]) => key === String(name) && (value === undefined || held === String(value)));
  }

  set(name, value) {
    const place = this.#pairs.findIndex(([key]) => key === String(name));
    if (place < 0) this.#pairs.push([String(name), String(value)]);
    else {
      this.#pairs[place][1] = String(value);
      this.#pairs = this.#pairs.filter(([key], i) => i <= place || key !== String(name));
    }
    this.#done();
  }

  sort() {
    this.#pairs.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
    this.#done();
  }

  forEach(f, self) {
    for (const [name, value] of this.#pairs) f.call(self, value, name, this);
  }

  entries() {
    return this.#pairs.map((pair) => [...pair])[Symbol.iterator]();
  }

  keys() {
    return this.#pairs.map(([name]) => name)[Symbol.iterator]();
  }

  values() {
    return this.#pairs.map(([, value]) => value)[Symbol.iterator]();
  }

  [Symbol.iterator]() {
    return this.entries();
  }

  toString() {
    return $host.form(this.#pairs.flat());
  }
}

export class URL {
  #parts;
  #params = undefined;

  constructor(text, base) {
    if (arguments.length === 0) throw new TypeError('new URL takes an address');
    this.#parts = $host.address(String(text), base === undefined ? undefined : String(base));
  }

  static canParse(text, base) {
    try {
      $host.address(String(text), base === undefined ? undefined : String(base));
      return true;
    } catch {
      return false;
    }
  }

  static parse(text, base) {
    return URL.canParse(text, base) ? new URL(text, base) : null;
  }

  $get(place) {
    return this.#parts[place];
  }

  $set(part, value) {
    this.#parts = $host.addressWith(this.#parts[0], part, String(value));
    if (part === 'search' || part === 'href') this.#params?.$reread(this.search);
  }

  get searchParams() {
    return (this.#params ??= URLSearchParams.$tied(this.search, (text) => {
      this.#parts = $host.addressWith(this.#parts[0], 'search', text);
    }));
  }

  toString() {
    return this.href;
  }

  toJSON() {
    return this.href;
  }
}

PARTS.forEach((part, place) => {
  Object.defineProperty(URL.prototype, part, {
    enumerable: true,
    configurable: true,
    get() {
      return this.$get(place);
    },
    set:
      part === 'origin'
        ? undefined
        : function (value) {
            if (part === 'href' && !URL.canParse(value)) throw new TypeError(`${kindOf(value)} isn't a valid URL: ${value}`);
            this.$set(part, value);
          },
  });
});

export default Object.freeze({ URL, URLSearchParams });
