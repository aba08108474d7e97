// The library at https://jslib.k6.io/formdata: multipart bodies with several files and fields.
import { FileData, hexOf } from 'plimsoll/internal/body';

export class FormData {
  constructor() {
    this.boundary = `----plimsoll${hexOf(12)}`;
    this.parts = [];
  }

  append(name, value, filename) {
    this.parts.push({ name: String(name), value, filename });
  }

  contentType() {
    return `multipart/form-data; boundary=${this.boundary}`;
  }

  body() {
    const fields = this.parts.map(({ name, value, filename }) => {
      if (value instanceof FileData || (value !== null && typeof value === 'object' && value.data !== undefined)) {
        const type = value.content_type ?? value.contentType ?? value.type ?? 'application/octet-stream';
        return [name, value.data, String(filename ?? value.filename ?? name), String(type)];
      }
      if (value instanceof ArrayBuffer || ArrayBuffer.isView(value)) {
        return [name, value, String(filename ?? name), 'application/octet-stream'];
      }
      return [name, String(value)];
    });
    return $host.multipart(this.boundary, fields);
  }
}

export default Object.freeze({ FormData });
