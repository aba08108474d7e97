// Setup, its data in iterations and in the teardown.
// Compared: the first 2 requests of each user.
import http from 'k6/http';
import { sleep } from 'k6';

export const options = { vus: 2, duration: '2s' };
const base = __ENV.BASE_URL;
const params = (token) => ({ headers: { 'x-user': `${__VU}`, Authorization: `Bearer ${token}` } });

export function setup() {
  const made = http.post(`${base}/items`, '{"name":"of the setup"}', params('none'));
  return { id: made.json('id'), token: 't0k3n', when: new Date(0), list: [1, 'two', null] };
}

export default function (data) {
  http.get(`${base}/items/${data.id}?when=${data.when}&keys=${Object.keys(data)}`, params(data.token));
  data.token = 'changed by an iteration';
  sleep(0.2);
}

export function teardown(data) {
  http.del(`${base}/items/${data.id}?list=${data.list.join("-")}`, null, params(data.token));
}
