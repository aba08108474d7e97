// The module `k6/secrets`: secrets are variables of the environment.

// Returns a promise, as k6 does.
export async function get(name) {
  const value = $host.variable(String(name));
  if (value === undefined) throw new Error(`the secret '${name}' isn't known: run with -e ${name}=…`);
  return value;
}

export async function source() {
  return { get };
}

export default Object.freeze({ get, source });
