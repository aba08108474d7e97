// Errors around requests: caught, thrown again, refused connections, and the iteration after them.
import http from 'k6/http';
import { fail } from 'k6';

export const options = { vus: 1, iterations: 2 };
const base = __ENV.BASE_URL;
const get = (path) => http.get(`${base}${path}`, { headers: { 'x-user': `${__VU}` } });

function risky(how) {
  try {
    get(`/echo?begin=${how}`);
    if (how === 'throw') throw new TypeError('on purpose');
    if (how === 'fail') fail('by fail');
    return 'well';
  } catch (error) {
    get(`/echo?caught=${encodeURIComponent(error.message ?? String(error))}&type=${error instanceof TypeError}`);
    return 'caught';
  } finally {
    get(`/echo?finally=${how}`);
  }
}

export default function () {
  for (const how of ['none', 'throw', 'fail']) get(`/echo?result=${risky(how)}`);
  const refused = http.get('http://127.0.0.1:1/', { timeout: '2s' });
  get(`/echo?status=${refused.status}&code=${refused.error_code}&body=${refused.body}`);
  const json = get('/status/204');
  get(`/echo?empty=${json.body}`);
  if (__ITER === 0) undefinedFunction();
  get('/echo?end');
}
