// Fields of answers by path.
import http from 'k6/http';

export const options = { vus: 1, iterations: 1 };
const base = __ENV.BASE_URL;

export default function () {
  const headers = { 'x-user': `${__VU}` };
  const r = http.get(`${base}/catalogue`, { headers });
  const paths = ['items.#', 'items.0.name', 'items.1.tags.1', 'items.#.id', 'items.#(id==2).name', 'missing', 'price.amount', 'a\\.b', 'empty', 'no', 'items.#(id>1)#.name', 'items.0'];
  for (const path of paths) {
    const value = r.json(path);
    http.post(`${base}/echo`, JSON.stringify({ path, value, kind: typeof value }), { headers });
  }
  let thrown = 'nothing';
  try {
    http.get(`${base}/html`, { headers }).json();
  } catch (error) {
    thrown = error instanceof Error || typeof error === 'object';
  }
  http.get(`${base}/echo?thrown=${thrown}`, { headers });
}
