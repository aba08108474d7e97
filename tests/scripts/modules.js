// Helper modules in files of their own, with functions, classes, defaults, and state.
// Compared: the first 10 requests of each user.
import http from 'k6/http';
import { sleep } from 'k6';
import makeClient, { names } from './parts/client.js';
import * as helpers from './parts/helpers.js';

export const options = { vus: 2, duration: '2s' };
const client = makeClient(__ENV.BASE_URL);

export default function () {
  const cart = new helpers.Cart(client);
  for (const name of names) cart.add(name);
  cart.pay((total) => total > 1);
  helpers.visit(client, `/echo?visits=${helpers.visits()}&status=${http.get(`${__ENV.BASE_URL}/items/1`, client.params()).status}`);
  sleep(0.2);
}
