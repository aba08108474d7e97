// GET requests: tags, names, queries, and params without a body.
import http from 'k6/http';
import { check } from 'k6';

export const options = { vus: 1, iterations: 2 };
const base = __ENV.BASE_URL;

export default function () {
  const params = { headers: { 'x-user': `${__VU}` }, tags: { kind: 'item' } };
  const first = http.get(`${base}/items/1`, params);
  check(first, { 'is found': (r) => r.status === 200 });
  http.get(`${base}/items/${first.json('id') + 1}?colour=red&size=a%20b`, { ...params, tags: { name: 'Coloured' } });
  http.get(base + '/items/3#part', params);
  http.request('GET', `${base}/items/4`, null, params);
  http.head(`${base}/items/5`, params);
  http.options(`${base}/items/6`, null, params);
}
