// The module `k6/crypto`: hashes and random bytes.

const hashWith = (algorithm) => (input, encoding) => $host.digest(algorithm, [input], encoding ?? 'binary');

export const md4 = hashWith('md4');
export const md5 = hashWith('md5');
export const sha1 = hashWith('sha1');
export const sha256 = hashWith('sha256');
export const sha384 = hashWith('sha384');
export const sha512 = hashWith('sha512');
export const sha512_224 = hashWith('sha512_224');
export const sha512_256 = hashWith('sha512_256');
export const ripemd160 = hashWith('ripemd160');

export function hmac(algorithm, secret, data, encoding) {
  return $host.hmac(String(algorithm), secret, [data], encoding ?? 'binary');
}

// Collects what it is given; the hash is made when it is asked for.
class Hasher {
  #parts = [];
  #digest;

  constructor(digest) {
    this.#digest = digest;
  }

  update(part) {
    if (ArrayBuffer.isView(part)) part = part.buffer.slice(part.byteOffset, part.byteOffset + part.byteLength);
    this.#parts.push(part instanceof ArrayBuffer ? part.slice(0) : part);
  }

  digest(encoding) {
    return this.#digest(this.#parts, encoding ?? 'binary');
  }
}

export function createHash(algorithm) {
  algorithm = String(algorithm);
  $host.digest(algorithm, [], 'hex');
  return new Hasher((parts, encoding) => $host.digest(algorithm, parts, encoding));
}

export function createHMAC(algorithm, secret) {
  algorithm = String(algorithm);
  $host.hmac(algorithm, secret, [], 'hex');
  return new Hasher((parts, encoding) => $host.hmac(algorithm, secret, parts, encoding));
}

export function hexEncode(data) {
  return data instanceof ArrayBuffer ? new Uint8Array(data).toHex() : $host.hex(data);
}

export function randomBytes(count) {
  return $host.randomBytes(Number(count));
}

export default Object.freeze({
  md4,
  md5,
  sha1,
  sha256,
  sha384,
  sha512,
  sha512_224,
  sha512_256,
  ripemd160,
  hmac,
  createHash,
  createHMAC,
  hexEncode,
  randomBytes,
});
