// Internal: bodies of requests that are not text.
import { kindOf } from 'plimsoll/internal/waiting';

const FORM = 'application/x-www-form-urlencoded';
const BINARY = 'application/octet-stream';

// A file of a multipart request.
export class FileData {
  constructor(data, filename, contentType) {
    if (Array.isArray(data)) data = new Uint8Array(data).buffer;
    if (typeof data !== 'string' && !(data instanceof ArrayBuffer) && !ArrayBuffer.isView(data)) {
      throw new TypeError(`http.file takes text, an array of numbers, or an ArrayBuffer, not ${kindOf(data)}`);
    }
    this.data = data;
    this.filename = filename === undefined ? `file-${hexOf(8)}` : String(filename);
    this.content_type = contentType === undefined ? BINARY : String(contentType);
  }
}

export function hexOf(bytes) {
  return new Uint8Array($host.randomBytes(bytes)).toHex();
}

// Returns the data to send and the type that it has unless the request names one.
export function encodeBody(body) {
  if (body instanceof ArrayBuffer || ArrayBuffer.isView(body)) return { data: body, type: undefined };
  if (typeof body !== 'object') return { data: String(body), type: undefined };
  if (typeof URLSearchParams === 'function' && body instanceof URLSearchParams) return { data: body.toString(), type: FORM };
  if (body instanceof String) return { data: String(body), type: undefined };
  const names = Object.keys(body);
  for (const name of names) {
    if (body[name] instanceof FileData) return multipart(names, body);
  }
  const pairs = [];
  // As in k6, whose forms are sorted by name.
  for (const name of names.sort()) {
    const value = body[name];
    if (Array.isArray(value)) for (const each of value) pairs.push(name, textOf(each));
    else pairs.push(name, textOf(value));
  }
  return { data: $host.form(pairs), type: FORM };
}

function multipart(names, body) {
  const fields = [];
  for (const name of names) {
    const value = body[name];
    if (value instanceof FileData) fields.push([name, value.data, value.filename, value.content_type]);
    else if (Array.isArray(value)) for (const each of value) fields.push([name, textOf(each)]);
    else fields.push([name, textOf(value)]);
  }
  const boundary = `plimsoll-${hexOf(16)}`;
  return { data: $host.multipart(boundary, fields), type: `multipart/form-data; boundary=${boundary}` };
}

function textOf(value) {
  if (value === null || value === undefined) return '';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
