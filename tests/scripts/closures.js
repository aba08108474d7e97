// Functions that wait: closures, classes, methods of arrays, generators of the script, spreads, and defaults.
// Compared: the first 36 requests of each user.
import http from 'k6/http';
import { sleep } from 'k6';

export const options = { vus: 2, duration: '2s' };
const base = __ENV.BASE_URL;

class Page {
  static count = 0;
  #path;
  constructor(path) {
    this.#path = path;
    Page.count += 1;
  }
  open(query = 'plain') {
    return http.get(`${base}${this.#path}?${query}`, { headers: { 'x-user': `${__VU}` } });
  }
  openAll = (...queries) => queries.map((query) => this.open(query).status);
}

class Slow extends Page {
  open(query) {
    sleep(0.01);
    return super.open(`slow-${query ?? 'none'}`);
  }
}

function* numbers(end) {
  for (let i = 1; i <= end; i++) yield i;
}

export default function () {
  const page = new Page('/items/1');
  const send = ((kept) => (query) => kept.open(query))(page);
  send('closed');
  ['a', 'b'].forEach((letter, i) => page.open(`${letter}${i}`));
  const good = [1, 2, 3].filter((n) => page.open(`filter${n}`).status === 200 && n !== 2);
  const sum = good.reduce((all, n) => all + page.open(`sum${all}`).status + n, 0);
  page.open(`total=${sum}&open=${page.openAll('x', 'y').join('-')}`);
  new Slow('/items/2').open();
  for (const n of numbers(2)) page.open(`n${n}`);
  const { status = page.open('default').status } = {};
  const table = { go: (what) => page.open(`${what}${status}`), ['late']() { return this.go('late'); } };
  table.late();
  [3, 1].some((n) => page.open(`some${n}`).status === 200);
  page?.open?.('optional');
  sleep(0.2);
}
