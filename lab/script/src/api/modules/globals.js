// Internal: what scripts find without an import: console, URL, URLSearchParams, crypto, timers, TextEncoder.
import { logged } from 'plimsoll/internal/inspect';
import { kindOf } from 'plimsoll/internal/waiting';
import { URL, URLSearchParams } from 'jslib/url';
import { setTimeout, setInterval, clearTimeout, clearInterval } from 'k6/timers';
import { same } from 'plimsoll/internal/same';

const line =
  (level) =>
  (...values) =>
    $host.log(level, values.map(logged).join(' '));

export const console = Object.freeze({
  log: line('info'),
  info: line('info'),
  debug: line('debug'),
  trace: line('debug'),
  warn: line('warn'),
  error: line('error'),
  table: line('info'),
  dir: line('info'),
  group: line('info'),
  groupEnd() {},
  assert(condition, ...values) {
    if (!condition) $host.log('error', ['Assertion failed', ...values.map(logged)].join(' '));
  },
});

const QUOTA = 65_536;

function bytesOf(data) {
  if (data instanceof ArrayBuffer) return data;
  if (ArrayBuffer.isView(data)) return data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength);
  throw new TypeError(`an ArrayBuffer or a view of one is expected, not ${kindOf(data)}`);
}

function hashOf(algorithm) {
  const name = String(typeof algorithm === 'object' ? algorithm?.name : algorithm).toUpperCase();
  if (!['SHA-1', 'SHA-256', 'SHA-384', 'SHA-512'].includes(name)) {
    throw new TypeError(`'${name}' isn't a hash of SubtleCrypto: use SHA-1, SHA-256, SHA-384, or SHA-512`);
  }
  return name;
}

// The key of an HMAC; others aren't supported.
class CryptoKey {
  #bytes;

  constructor(bytes, hash, extractable, usages) {
    this.#bytes = bytes;
    this.type = 'secret';
    this.extractable = !!extractable;
    this.algorithm = { name: 'HMAC', hash: { name: hash }, length: bytes.byteLength * 8 };
    this.usages = [...usages];
  }

  static $bytes(key, usage) {
    if (!(key instanceof CryptoKey)) throw new TypeError(`a key of SubtleCrypto is expected, not ${kindOf(key)}`);
    if (!key.usages.includes(usage)) throw new TypeError(`the key isn't for '${usage}'`);
    return key.#bytes;
  }
}

function onlyHmac(algorithm, what) {
  const name = String(typeof algorithm === 'object' ? algorithm?.name : algorithm).toUpperCase();
  if (name !== 'HMAC') throw new TypeError(`crypto.subtle.${what} supports HMAC only, not ${name}: sign outside of the script, or by k6/crypto`);
}

const subtle = Object.freeze({
  async digest(algorithm, data) {
    return $host.digest(hashOf(algorithm), [bytesOf(data)], 'binary');
  },
  async importKey(format, data, algorithm, extractable, usages) {
    onlyHmac(algorithm, 'importKey');
    if (format !== 'raw') throw new TypeError(`a key is imported from 'raw' bytes, not from '${format}'`);
    return new CryptoKey(bytesOf(data).slice(0), hashOf(algorithm.hash), extractable, usages);
  },
  async generateKey(algorithm, extractable, usages) {
    onlyHmac(algorithm, 'generateKey');
    const hash = hashOf(algorithm.hash);
    const bits = algorithm.length ?? (hash === 'SHA-384' || hash === 'SHA-512' ? 1024 : 512);
    return new CryptoKey($host.randomBytes(Math.ceil(bits / 8)), hash, extractable, usages);
  },
  async exportKey(format, key) {
    if (format !== 'raw' || !key.extractable) throw new TypeError("only an extractable key can be exported, as 'raw'");
    return CryptoKey.$bytes(key, key.usages[0]).slice(0);
  },
  async sign(algorithm, key, data) {
    onlyHmac(algorithm, 'sign');
    return $host.hmac(key.algorithm.hash.name, CryptoKey.$bytes(key, 'sign'), [bytesOf(data)], 'binary');
  },
  async verify(algorithm, key, signature, data) {
    onlyHmac(algorithm, 'verify');
    const made = $host.hmac(key.algorithm.hash.name, CryptoKey.$bytes(key, 'verify'), [bytesOf(data)], 'binary');
    return same(made, bytesOf(signature));
  },
  async encrypt() {
    throw new TypeError('crypto.subtle.encrypt is not supported: encrypt outside of the script, and send the result');
  },
  async decrypt() {
    throw new TypeError('crypto.subtle.decrypt is not supported');
  },
});

export const crypto = Object.freeze({
  subtle,
  getRandomValues(view) {
    if (!ArrayBuffer.isView(view) || view instanceof Float32Array || view instanceof Float64Array || view instanceof DataView) {
      throw new TypeError(`getRandomValues takes an array of integers such as Uint8Array, not ${kindOf(view)}`);
    }
    if (view.byteLength > QUOTA) throw new RangeError(`getRandomValues gives at most ${QUOTA} bytes at once`);
    new Uint8Array(view.buffer, view.byteOffset, view.byteLength).set(new Uint8Array($host.randomBytes(view.byteLength)));
    return view;
  },
  randomUUID() {
    const bytes = new Uint8Array($host.randomBytes(16));
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    const hex = bytes.toHex();
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
  },
});

class TextEncoder {
  get encoding() {
    return 'utf-8';
  }

  encode(text = '') {
    return new Uint8Array($host.bytes(String(text)));
  }
}

class TextDecoder {
  constructor(label = 'utf-8') {
    if (!/^(?:utf-?8|unicode-1-1-utf-8)$/i.test(label)) throw new RangeError(`TextDecoder reads UTF-8 only, not ${label}`);
  }

  get encoding() {
    return 'utf-8';
  }

  decode(data) {
    return data === undefined ? '' : $host.utf8(bytesOf(data));
  }
}

const globals = {
  console,
  crypto,
  URL,
  URLSearchParams,
  TextEncoder,
  TextDecoder,
  setTimeout,
  setInterval,
  clearTimeout,
  clearInterval,
};
for (const [name, value] of Object.entries(globals)) {
  Object.defineProperty(globalThis, name, { value, writable: false, enumerable: false, configurable: false });
}
