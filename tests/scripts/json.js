// Bodies of JSON, and requests that follow from answers.
import http from 'k6/http';
import { check, fail } from 'k6';

export const options = { vus: 1, iterations: 2 };
const base = __ENV.BASE_URL;
const headers = () => ({ 'Content-Type': 'application/json', 'x-user': String(__VU) });

export default function () {
  const made = http.post(`${base}/items`, JSON.stringify({ name: `Lamp ${__VU}`, tags: ['a', 'ü'] }), { headers: headers() });
  if (!check(made, { 'is created': (r) => r.status === 201 })) fail('the item was not created');
  const { id } = made.json();
  http.put(`${base}/items/${id}`, JSON.stringify({ id, price: 12.5 }), { headers: headers() });
  http.patch(`${base}/items/${id}`, '{"price":null}', { headers: headers() });
  http.del(`${base}/items/${id}`, null, { headers: headers() });
  http.post(`${base}/items`, null, { headers: headers() });
  http.post(`${base}/items`, 'plain text', { headers: { 'x-user': String(__VU) } });
}
