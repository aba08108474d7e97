// Cookies: what answers set, jars, cookies of one request, and their end with the iteration.
// Compared: the first 14 requests of each user.
import http from 'k6/http';
import { check, sleep } from 'k6';

export const options = { vus: 2, duration: '2s' };
const base = __ENV.BASE_URL;

export default function () {
  const headers = { 'x-user': `${__VU}` };
  http.get(`${base}/echo`, { headers });
  const set = http.get(`${base}/cookies?session=s${__VU}&theme=dark`, { headers });
  check(set, { 'has a cookie': (r) => r.cookies.session[0].value === `s${__VU}` });
  http.get(`${base}/echo`, { headers });
  http.get(`${base}/echo`, { headers, cookies: { extra: 'one', theme: { value: 'light', replace: true } } });
  const jar = http.cookieJar();
  jar.set(base, 'kept', 'yes');
  jar.set(base, 'narrow', 'no', { path: '/elsewhere' });
  http.get(`${base}/echo`, { headers });
  jar.delete(base, 'theme');
  http.get(`${base}/echo?names=${Object.keys(jar.cookiesForURL(base)).sort().join('-')}`, { headers });
  jar.clear(base);
  http.get(`${base}/echo`, { headers });
  sleep(0.2);
}
