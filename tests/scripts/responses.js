// What answers have: kinds of bodies, headers, and statuses.
import http from 'k6/http';

export const options = { vus: 1, iterations: 1 };
const base = __ENV.BASE_URL;

export default function () {
  const headers = { 'x-user': `${__VU}` };
  const tell = (facts) => http.post(`${base}/echo`, JSON.stringify(facts), { headers });
  const none = http.get(`${base}/items/1`, { headers, responseType: 'none' });
  tell({ body: none.body, status: none.status, type: none.headers['Content-Type'] });
  const binary = http.get(`${base}/bytes/6`, { headers, responseType: 'binary' });
  tell({ bytes: Array.from(new Uint8Array(binary.body)), length: binary.body.byteLength });
  const text = http.get(`${base}/items/2`, { headers });
  tell({ text: text.body, length: text.body.length, error: text.error, code: text.error_code, proto: text.proto });
  const missing = http.get(`${base}/status/404`, { headers });
  tell({ status: missing.status, code: missing.error_code, error: missing.error });
  tell({ method: text.request.method, sent: text.request.headers['X-User'], body: text.request.body });
}
