// Bodies of forms: objects of texts, numbers, and lists.
import http from 'k6/http';

export const options = { vus: 1, iterations: 2 };
const base = __ENV.BASE_URL;

export default function () {
  const headers = { 'x-user': `${__VU}` };
  http.post(`${base}/echo`, { name: 'Ann Lee', age: 7, note: 'a&b=c+d é' }, { headers });
  http.put(`${base}/echo`, { pick: ['one', 'two'], last: true }, { headers });
  http.post(`${base}/echo`, {}, { headers });
  http.del(`${base}/echo`, { reason: 'old' }, { headers });
  http.post(`${base}/echo`, { a: '1' }, { headers: { ...headers, 'Content-Type': 'application/x-www-form-urlencoded; charset=utf-8' } });
}
