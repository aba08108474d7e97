// Loops, waits, labels, switches, and early ends.
// Compared: the first 23 requests of each user.
import http from 'k6/http';
import { sleep } from 'k6';

export const options = { vus: 2, duration: '2s' };
const base = __ENV.BASE_URL;
let visits = 0;

function get(path) {
  return http.get(`${base}${path}`, { headers: { 'x-user': `${__VU}` } });
}

export default function () {
  visits += 1;
  let tries = 0;
  while (get(`/echo?try=${tries}`).status === 200 && tries < 2) {
    tries++;
    sleep(0.005);
  }
  do tries--; while (tries > 0 && get(`/echo?down=${tries}`).status === 200);
  outer: for (let i = 0; i < 3; i++) {
    for (const letter of 'abc') {
      if (letter === 'b') continue outer;
      if (i === 2) break outer;
      get(`/echo?at=${i}${letter}`);
    }
  }
  for (const key in { x: 1, y: 2 }) get(`/echo?key=${key}`);
  switch (get('/items/1').json('id')) {
    case 1:
      get('/echo?case=one');
    default:
      get('/echo?case=through');
  }
  sleep(0.2);
  if (visits > 1) return;
  get(`/echo?visits=${visits}`);
}
