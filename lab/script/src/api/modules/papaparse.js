// The library at https://jslib.k6.io/papaparse: CSV (RFC 4180), with the options that scripts use.
import { kindOf } from 'plimsoll/internal/waiting';

const DELIMITERS = [',', '\t', '|', ';'];

function guessed(text) {
  const end = text.search(/[\r\n]/);
  const line = end < 0 ? text : text.slice(0, end);
  let best = ',';
  let most = 0;
  for (const delimiter of DELIMITERS) {
    const count = line.split(delimiter).length - 1;
    if (count > most) [best, most] = [delimiter, count];
  }
  return best;
}

function typed(value) {
  if (value === 'true' || value === 'TRUE') return true;
  if (value === 'false' || value === 'FALSE') return false;
  if (value === '') return null;
  return /^\s*-?(?:\d+\.?|\.\d+|\d+\.\d+)(?:[eE][-+]?\d+)?\s*$/.test(value) ? Number(value) : value;
}

// Splits text into rows of fields.
function rowsOf(text, { delimiter, quote, comments, preview }, errors) {
  const rows = [];
  let place = 0;
  while (place < text.length && rows.length < preview) {
    if (comments && text.startsWith(comments, place)) {
      const end = text.indexOf('\n', place);
      place = end < 0 ? text.length : end + 1;
      continue;
    }
    const row = [];
    for (;;) {
      let field;
      if (text[place] === quote) {
        field = '';
        for (;;) {
          const end = text.indexOf(quote, place + 1);
          if (end < 0) {
            errors.push({ type: 'Quotes', code: 'MissingQuotes', message: 'a quoted field has no end', row: rows.length });
            field += text.slice(place + 1);
            place = text.length;
            break;
          }
          field += text.slice(place + 1, end);
          place = end + 1;
          if (text[place] !== quote) break;
          field += quote;
        }
      } else {
        let end = place;
        while (end < text.length && text[end] !== '\n' && text[end] !== '\r' && !text.startsWith(delimiter, end)) end++;
        field = text.slice(place, end);
        place = end;
      }
      row.push(field);
      if (text.startsWith(delimiter, place)) place += delimiter.length;
      else break;
    }
    if (text[place] === '\r') place++;
    if (text[place] === '\n') place++;
    rows.push(row);
  }
  return rows;
}

export function parse(text, settings = {}) {
  if (typeof text !== 'string') throw new TypeError(`papaparse.parse takes text, such as open('users.csv'), not ${kindOf(text)}`);
  if (text.charCodeAt(0) === 0xfeff) text = text.slice(1);
  const errors = [];
  const delimiter = settings.delimiter || guessed(text);
  const quote = settings.quoteChar ?? '"';
  const preview = settings.preview > 0 ? settings.preview + (settings.header ? 1 : 0) : Infinity;
  const comments = settings.comments === true ? '#' : settings.comments || '';
  let rows = rowsOf(text, { delimiter, quote, comments, preview }, errors);
  if (settings.skipEmptyLines) {
    const greedy = settings.skipEmptyLines === 'greedy';
    rows = rows.filter((row) => (greedy ? row.some((field) => field.trim() !== '') : row.length > 1 || row[0] !== ''));
  }
  const change = (value, field) => {
    const own = settings.transform ? settings.transform(value, field) : value;
    const wanted = typeof settings.dynamicTyping === 'object' ? settings.dynamicTyping?.[field] : settings.dynamicTyping;
    return wanted && typeof own === 'string' ? typed(own) : own;
  };
  const meta = { delimiter, linebreak: text.includes('\r\n') ? '\r\n' : '\n', aborted: false, truncated: false };
  if (!settings.header) {
    return { data: rows.map((row) => row.map((value, i) => change(value, i))), errors, meta };
  }
  const names = (rows.shift() ?? []).map((name, i) => (settings.transformHeader ? settings.transformHeader(name, i) : name));
  const data = rows.map((row, number) => {
    if (row.length !== names.length) {
      const few = row.length < names.length;
      const message = `${few ? 'too few' : 'too many'} fields: expected ${names.length}, found ${row.length}`;
      errors.push({ type: 'FieldMismatch', code: few ? 'TooFewFields' : 'TooManyFields', message, row: number });
    }
    const object = {};
    row.forEach((value, i) => {
      if (i < names.length) object[names[i]] = change(value, names[i]);
      else (object.__parsed_extra ??= []).push(value);
    });
    return object;
  });
  return { data, errors, meta: { ...meta, fields: names } };
}

export function unparse(rows, { delimiter = ',', newline = '\r\n', header = true } = {}) {
  const quoted = (value) => {
    const text = value === null || value === undefined ? '' : String(value);
    return /["\r\n]/.test(text) || text.includes(delimiter) ? `"${text.replace(/"/g, '""')}"` : text;
  };
  const lines = [];
  let names;
  for (const row of rows) {
    if (Array.isArray(row)) lines.push(row.map(quoted).join(delimiter));
    else {
      if (names === undefined) {
        names = Object.keys(row);
        if (header) lines.push(names.map(quoted).join(delimiter));
      }
      lines.push(names.map((name) => quoted(row[name])).join(delimiter));
    }
  }
  return lines.join(newline);
}

export default Object.freeze({ parse, unparse });
