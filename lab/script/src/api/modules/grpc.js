// The module `k6/net/grpc`: its constants, and a client that says what to do instead.

const NAMES = [
  'OK',
  'Canceled',
  'Unknown',
  'InvalidArgument',
  'DeadlineExceeded',
  'NotFound',
  'AlreadyExists',
  'PermissionDenied',
  'ResourceExhausted',
  'FailedPrecondition',
  'Aborted',
  'OutOfRange',
  'Unimplemented',
  'Internal',
  'Unavailable',
  'DataLoss',
  'Unauthenticated',
];
const statuses = Object.fromEntries(NAMES.map((name, code) => [`Status${name}`, code]));

export const {
  StatusOK,
  StatusCanceled,
  StatusUnknown,
  StatusInvalidArgument,
  StatusDeadlineExceeded,
  StatusNotFound,
  StatusAlreadyExists,
  StatusPermissionDenied,
  StatusResourceExhausted,
  StatusFailedPrecondition,
  StatusAborted,
  StatusOutOfRange,
  StatusUnimplemented,
  StatusInternal,
  StatusUnavailable,
  StatusDataLoss,
  StatusUnauthenticated,
} = statuses;
export const HealthCheckUnknown = 0;
export const HealthCheckServing = 1;
export const HealthCheckNotServing = 2;

function refuse(what) {
  throw new Error(`${what}: a script can't send gRPC. Write the calls as a workload with protocol: grpc (docs/clients.md)`);
}

export class Client {
  load() {
    return [];
  }

  loadProtoset() {
    return [];
  }

  connect() {
    refuse('client.connect');
  }

  invoke() {
    refuse('client.invoke');
  }

  asyncInvoke() {
    refuse('client.asyncInvoke');
  }

  healthCheck() {
    refuse('client.healthCheck');
  }

  close() {}
}

export class Stream {
  constructor() {
    refuse('new grpc.Stream');
  }
}

export default Object.freeze({ Client, Stream, HealthCheckUnknown, HealthCheckServing, HealthCheckNotServing, ...statuses });
