// Metrics of the script, and thresholds on them.
import http from 'k6/http';
import { Counter, Gauge, Rate, Trend } from 'k6/metrics';

const bought = new Counter('bought');
const stock = new Gauge('stock');
const failed = new Rate('failed');
const waited = new Trend('waited', true);

export const options = {
  vus: 1,
  iterations: 2,
  thresholds: { bought: ['count>1'], failed: ['rate<0.9'], waited: ['p(95)<60000'], 'http_req_duration{kind:item}': ['max>=0'] },
};
const base = __ENV.BASE_URL;

export default function () {
  const r = http.get(`${base}/items/1`, { headers: { 'x-user': `${__VU}` }, tags: { kind: 'item' } });
  bought.add(1, { colour: 'red' });
  stock.add(r.json('stock'));
  failed.add(r.status !== 200);
  waited.add(r.timings.duration);
  const kinds = [r.timings.duration, r.timings.waiting, r.timings.blocked].map((time) => typeof time);
  http.get(`${base}/echo?kinds=${kinds}`, { headers: { 'x-user': `${__VU}` } });
}
