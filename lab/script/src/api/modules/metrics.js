// The module `k6/metrics`: own metrics.
import { kindOf } from 'plimsoll/internal/waiting';

const NAME = /^[\p{L}\p{N}._ !?/&#()<>%-]{1,128}$/u;

class Metric {
  constructor(kind, name, isTime) {
    if (typeof name !== 'string' || !NAME.test(name)) {
      throw new TypeError(`'${name}' can't name a metric: a name has 1 to 128 letters, digits, and ._ !?/&#()<>%-`);
    }
    this.name = name;
    this.kind = kind;
    this.isTime = isTime === true;
    $host.declare(name, kind, this.isTime);
  }

  add(value) {
    const number = typeof value === 'number' ? value : Number(value);
    if (Number.isNaN(number)) {
      $host.log('warn', `${this.name}: ${kindOf(value)} isn't a number, so it is not added`);
      return false;
    }
    $host.metric(this.name, this.kind, number, this.isTime);
    return true;
  }
}

export class Counter extends Metric {
  constructor(name, isTime) {
    super('counter', name, isTime);
  }
}

export class Gauge extends Metric {
  constructor(name, isTime) {
    super('gauge', name, isTime);
  }
}

export class Rate extends Metric {
  constructor(name, isTime) {
    super('rate', name, isTime);
  }

  add(value) {
    $host.metric(this.name, 'rate', value ? 1 : 0, false);
    return true;
  }
}

export class Trend extends Metric {
  constructor(name, isTime) {
    super('trend', name, isTime);
  }
}

export default Object.freeze({ Counter, Gauge, Rate, Trend });
