// Shared data, and the numbers of users and iterations.
// Compared: the first 4 requests of each user.
import http from 'k6/http';
import exec from 'k6/execution';
import { sleep } from 'k6';
import { SharedArray } from 'k6/data';

export const options = { scenarios: { all: { executor: 'constant-vus', vus: 3, duration: '2s' } } };
const people = new SharedArray('people', () => JSON.parse(open('./parts/people.json')).people);
const base = __ENV.BASE_URL;

export default function () {
  const person = people[(exec.vu.idInTest - 1) % people.length];
  const ids = [exec.vu.idInInstance, exec.vu.iterationInScenario, exec.vu.iterationInInstance, __ITER];
  http.get(`${base}/people/${person.name}?of=${people.length}&ids=${ids}&executor=${exec.scenario.executor}`, {
    headers: { 'x-user': `${exec.vu.idInTest}` },
  });
  const names = people.filter((one) => one.age > 30).map((one) => one.name);
  http.post(`${base}/echo`, JSON.stringify({ names, last: people[people.length - 1] }), { headers: { 'x-user': `${__VU}` } });
  sleep(0.2);
}
