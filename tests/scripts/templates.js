// Addresses by template, and objects of addresses.
import http from 'k6/http';
import { URL, URLSearchParams } from 'https://jslib.k6.io/url/1.0.0/index.js';

export const options = { vus: 1, iterations: 2 };
const base = __ENV.BASE_URL;

export default function () {
  const params = { headers: { 'x-user': `${__VU}` } };
  for (let id = 1; id <= 2; id++) http.get(http.url`${base}/items/${id}?page=${id * 2}`, params);
  const query = new URLSearchParams([['q', 'lamp shade'], ['sort', 'a&b']]);
  http.get(`${base}/items?${query.toString()}`, params);
  const address = new URL(`${base}/people/ann`);
  address.searchParams.append('age', '30');
  http.get(address.toString(), params);
  http.get(`${base}/a/../items/./1`, params);
  http.get(`${base}/ü?x=1`, params);
  http.get(`${base}/people/${encodeURIComponent('ü/ö')}`, params);
}
