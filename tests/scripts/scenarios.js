// Two scenarios with functions and tags of their own. Users are named by scenario: their numbers depend on the order.
// Compared: the first 2 requests of each user.
import http from 'k6/http';
import exec from 'k6/execution';
import { sleep } from 'k6';

export const options = {
  scenarios: {
    readers: { executor: 'constant-vus', vus: 1, duration: '2s', exec: 'read', tags: { who: 'reader' } },
    writers: { executor: 'constant-vus', vus: 1, duration: '2s', exec: 'write', startTime: '100ms' },
  },
};
const base = __ENV.BASE_URL;
const params = () => ({ headers: { 'x-user': exec.scenario.name } });

export function read() {
  http.get(`${base}/items/${exec.vu.iterationInScenario + 1}`, params());
  sleep(0.2);
}

export function write() {
  http.post(`${base}/items`, JSON.stringify({ number: exec.vu.iterationInScenario, tag: exec.vu.tags.scenario }), params());
  sleep(0.2);
}
