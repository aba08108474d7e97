// Checks whose functions send requests themselves.
import http from 'k6/http';
import { check, sleep } from 'k6';

export const options = { vus: 1, iterations: 2 };
const base = __ENV.BASE_URL;
const params = () => ({ headers: { 'x-user': `${__VU}` } });

function isThere(id) {
  return http.get(`${base}/items/${id}`, params()).status === 200;
}

export default function () {
  const all = check(7, {
    'is there': (id) => isThere(id),
    'has details': (id) => {
      const details = http.get(`${base}/items/${id}/details`, params());
      sleep(0.01);
      return details.json('of') === id;
    },
    'is no error': () => http.get(`${base}/status/500`, params()).status !== 500,
  }, { area: 'shop' });
  http.get(`${base}/echo?all=${all}`, params());
}
