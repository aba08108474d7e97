// The module `k6/encoding`: Base64.

const FORMS = {
  __proto__: null,
  std: {},
  rawstd: { omitPadding: true },
  url: { alphabet: 'base64url' },
  rawurl: { alphabet: 'base64url', omitPadding: true },
};

export function b64encode(input, alphabet = 'std') {
  const form = FORMS[alphabet];
  if (input instanceof ArrayBuffer && form !== undefined) return new Uint8Array(input).toBase64(form);
  return $host.base64(input, String(alphabet));
}

export function b64decode(input, alphabet = 'std', format) {
  return $host.unbase64(String(input), String(alphabet), format === 's');
}

export default Object.freeze({ b64encode, b64decode });
