// Batches: arrays, objects, and what follows from their answers. Requests of one batch have the same `x-batch`.
// Compared: the first 14 requests of each user.
import http from 'k6/http';
import { check, sleep } from 'k6';

export const options = { vus: 2, duration: '2s' };
const base = __ENV.BASE_URL;

export default function () {
  const params = (batch) => ({ headers: { 'x-user': `${__VU}`, 'x-batch': `${batch}-${__ITER}` } });
  const answers = http.batch([
    ['GET', `${base}/items/1`, null, params('a')],
    ['POST', `${base}/items`, JSON.stringify({ n: 1 }), params('a')],
    { method: 'PUT', url: `${base}/items/2`, body: { form: 'yes' }, params: params('a') },
    { method: 'DELETE', url: `${base}/items/3`, params: params('a') },
  ]);
  const statuses = answers.map((answer) => answer.status).join(',');
  const named = http.batch({
    first: { method: 'GET', url: `${base}/echo?statuses=${statuses}`, params: params('b') },
    second: ['GET', `${base}/items/${answers[0].json().id + 8}`, null, params('b')],
  });
  check(named.second, { 'has its id': (r) => r.json('id') === 9 });
  http.get(`${base}/echo?keys=${Object.keys(named)}`, params('c'));
  sleep(0.2);
}
