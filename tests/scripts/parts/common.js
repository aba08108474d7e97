// Functions of a CommonJS file.
exports.double = (n) => 2 * n;
exports.path = function (id) {
  return '/items/' + id;
};
