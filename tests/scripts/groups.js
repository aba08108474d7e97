// Groups, nested, with results and errors.
import http from 'k6/http';
import { check, group } from 'k6';

export const options = { vus: 1, iterations: 2 };
const base = __ENV.BASE_URL;
const params = () => ({ headers: { 'x-user': `${__VU}` } });

export default function () {
  const id = group('browse', () => {
    const found = http.get(`${base}/items/5`, params());
    group('details', function () {
      http.get(`${base}/items/5/details`, params());
    });
    return found.json('id');
  });
  try {
    group('buy', () => {
      const paid = http.post(`${base}/orders`, JSON.stringify({ id }), params());
      check(paid, { 'is paid': (r) => r.status === 200 }) || http.get(`${base}/echo?refused`, params());
      throw new Error('out of stock');
    });
  } catch (error) {
    http.get(`${base}/echo?error=${encodeURIComponent(error.message)}`, params());
  }
}
