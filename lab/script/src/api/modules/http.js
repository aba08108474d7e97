// The module `k6/http`, in part.
class Response {
  #read;
  constructor(read) {
    this.#read = read;
  }
  get status() {
    return this.#read('status');
  }
  get body() {
    return this.#read('body');
  }
  json(path) {
    if (path !== undefined) return JSON.parse(this.body)[path];
    return JSON.parse(this.body);
  }
}
const answered = (answer) => new Response(answer);

export function get(url) {
  return $op('request', ['GET', String(url), null], answered);
}

export function post(url, body) {
  return $op('request', ['POST', String(url), body ?? null], answered);
}

export default { get, post };
