// A client with the address of the server.
import http from 'k6/http';

export const names = ['lamp', 'chair'];

export default function makeClient(base) {
  return {
    params: () => ({ headers: { 'x-user': `${__VU}` } }),
    get(path) {
      return http.get(`${base}${path}`, this.params());
    },
    post(path, body) {
      return http.post(`${base}${path}`, JSON.stringify(body), this.params());
    },
  };
}
