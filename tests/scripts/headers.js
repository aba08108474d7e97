// Headers: case, numbers, several of them, and those that override what the client sets.
import http from 'k6/http';

export const options = { vus: 1, iterations: 2 };
const base = __ENV.BASE_URL;

export default function () {
  const own = { 'X-User': `${__VU}`, 'X-Number': 5, 'x-lower': 'a, b', 'X-Empty': '', 'X-Space': ' both ' };
  http.get(`${base}/echo`, { headers: own, tags: { part: 'headers' } });
  http.get(`${base}/echo`, { headers: Object.assign({}, own, { Authorization: 'Bearer abc', Cookie: 'made=by-hand' }) });
  http.post(`${base}/echo`, '<a/>', { headers: { ...own, 'content-type': 'application/xml' } });
  http.request('REPORT', `${base}/echo`, 'asked', { headers: own });
}
