// The module `k6/encoding`: Base64.

export function b64encode(input, alphabet = 'std') {
  return $host.base64(input, String(alphabet));
}

export function b64decode(input, alphabet = 'std', format) {
  return $host.unbase64(String(input), String(alphabet), format === 's');
}

export default Object.freeze({ b64encode, b64decode });
