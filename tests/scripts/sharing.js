// Iterations that users share: each number is sent once, by any user.
import http from 'k6/http';
import exec from 'k6/execution';

export const options = { scenarios: { shared: { executor: 'shared-iterations', vus: 1, iterations: 5, maxDuration: '20s' } } };
const base = __ENV.BASE_URL;

export default function () {
  const headers = { 'x-user': 'all', 'x-batch': 'shared' };
  http.get(`${base}/items/${exec.scenario.iterationInTest}`, { headers });
}
