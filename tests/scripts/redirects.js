// Redirects: followed, bounded, and by method.
import http from 'k6/http';
import { check } from 'k6';

export const options = { vus: 1, iterations: 1 };
const base = __ENV.BASE_URL;

export default function () {
  const headers = { 'x-user': `${__VU}`, 'X-Trace': 'kept' };
  const followed = http.get(`${base}/redirect/3`, { headers });
  check(followed, { 'is at the end': (r) => r.status === 200 && r.url.endsWith('/items/1') });
  const first = http.get(`${base}/redirect/3`, { headers, redirects: 0 });
  http.get(`${base}/echo?status=${first.status}&to=${first.headers.Location}`, { headers });
  const second = http.get(`${base}/redirect/3`, { headers, redirects: 2 });
  http.get(`${base}/echo?status=${second.status}`, { headers });
  http.post(`${base}/moved/302`, 'a body', { headers });
  http.post(`${base}/moved/307`, 'a body', { headers });
  http.post(`${base}/moved/303`, { a: 1 }, { headers });
  http.put(`${base}/moved/308`, '{"a":1}', { headers: { ...headers, 'Content-Type': 'application/json' } });
  http.get(`${base}/cookies/redirect`, { headers });
}
