// Forms with files, and bodies of bytes.
import http from 'k6/http';

export const options = { vus: 1, iterations: 1 };
const base = __ENV.BASE_URL;
const text = open('./parts/note.txt');
const bytes = open('./parts/note.txt', 'b');

export default function () {
  const headers = { 'x-user': `${__VU}` };
  http.post(`${base}/echo`, { note: http.file(text, 'note.txt', 'text/plain'), title: 'A note' }, { headers });
  http.post(`${base}/echo`, { data: http.file(bytes, 'data.bin') }, { headers });
  http.post(`${base}/echo`, bytes, { headers: { ...headers, 'Content-Type': 'application/octet-stream' } });
  http.post(`${base}/echo`, new Uint8Array([0, 255, 10, 13]).buffer, { headers });
}
