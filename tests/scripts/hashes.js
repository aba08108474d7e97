// Hashes, HMAC, and encodings in headers.
import http from 'k6/http';
import crypto from 'k6/crypto';
import encoding from 'k6/encoding';

export const options = { vus: 1, iterations: 1 };
const base = __ENV.BASE_URL;

export default function () {
  const body = JSON.stringify({ a: 'ü', n: 1 });
  const bytes = new Uint8Array([1, 2, 250]).buffer;
  const hasher = crypto.createHash('sha256');
  hasher.update('one');
  hasher.update('two');
  const headers = {
    'x-user': `${__VU}`,
    'X-Md5': crypto.md5(body, 'hex'),
    'X-Sha1': crypto.sha1(body, 'base64'),
    'X-Sha256': crypto.sha256(body, 'base64url'),
    'X-Sha384': crypto.sha384(bytes, 'hex'),
    'X-Sha512-256': crypto.sha512_256(body, 'base64rawurl'),
    'X-Ripemd': crypto.ripemd160(body, 'hex'),
    'X-Two': hasher.digest('hex'),
    'X-Hmac': crypto.hmac('sha256', 'key', body, 'base64'),
    'X-Hmac-512': crypto.hmac('sha512', bytes, 'text', 'hex'),
    'X-B64': encoding.b64encode('a?ü>', 'url'),
    'X-B64-Raw': encoding.b64encode(bytes, 'rawstd'),
    'X-Decoded': encoding.b64decode('aMOpbGxv', 'std', 's') === 'h\u00e9llo',
    'X-Bytes': new Uint8Array(encoding.b64decode('AQL6')).join('-'),
    'X-Binary': new Uint8Array(crypto.sha1('a', 'binary')).slice(0, 3).join('-'),
    'X-Random': crypto.randomBytes(9).byteLength,
  };
  http.post(`${base}/echo`, body, { headers });
}
