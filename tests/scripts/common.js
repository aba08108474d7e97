// CommonJS: `require` and `module.exports`.
const http = require('k6/http');
const { check } = require('k6');
const { double, path } = require('./parts/common.js');

module.exports.options = { vus: 1, iterations: 2 };

module.exports.default = function () {
  const params = { headers: { 'x-user': String(__VU) } };
  const answer = http.get(__ENV.BASE_URL + path(double(2)), params);
  check(answer, { found: (r) => r.status === 200 });
};
