// Basic credentials: in the address, in a header, and after a challenge.
import http from 'k6/http';
import encoding from 'k6/encoding';

export const options = { vus: 1, iterations: 2 };
const base = __ENV.BASE_URL;

export default function () {
  const headers = { 'x-user': `${__VU}` };
  const withName = base.replace('://', `://ann${__VU}:se%40cret@`);
  const by = http.get(`${withName}/basic`, { headers });
  http.get(`${base}/echo?status=${by.status}`, { headers });
  http.get(`${withName}/basic`, { headers, auth: 'basic' });
  const value = `Basic ${encoding.b64encode(`ann:${__VU}`)}`;
  http.get(`${base}/basic`, { headers: { ...headers, Authorization: value } });
  const none = http.get(`${base}/basic`, { headers });
  http.get(`${base}/echo?status=${none.status}&asks=${encodeURIComponent(none.headers['Www-Authenticate'])}`, { headers });
}
