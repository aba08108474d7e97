// The module `k6/secrets`: secrets are variables of the environment.
import { secret } from 'plimsoll';

// Returns a promise, as k6 does.
export async function get(name) {
  return secret(name);
}

export async function source() {
  return { get };
}

export default Object.freeze({ get, source });
