/** A test of the API that is not run through a client. */
export interface Exception {
  /** Below `test/engine`. */
  readonly file: string
  /** A part of the title of the tests. */
  readonly title: string
  /** Default: both. */
  readonly access?: 'handler' | 'server'
}

/** The exceptions by their reasons. Each must name a test that exists. */
export const EXCEPTIONS: Readonly<Record<string, readonly Exception[]>> = {
  'the test holds the storage until requests that the client sends later have arrived': [
    { file: 'api/append-session.test.ts', title: 'check conditions against appends in flight' },
  ],
  'a client has the bound of its sessions only; that of all appends in flight is the engine’s': [
    { file: 'api/append-session.test.ts', title: 'apply back-pressure when a session or the engine' },
  ],
  'a session over single requests does not notice that another stream has got the name (docs/client.md)': [
    { file: 'api/append-session.test.ts', title: 'end when their stream is deleted', access: 'handler' },
  ],
  'a request or a connection has several batches, and the error does not tell which of them are stored': [
    { file: 'api/discarded-appends.test.ts', title: 'that the storage failed to write is discarded' },
    { file: 'api/discarded-appends.test.ts', title: 'records of a producer behind a failed batch' },
  ],
  'a client sends an append after the one before has failed, so that it reaches the storage, and fails': [
    { file: 'api/discarded-appends.test.ts', title: 'behind a failed one of another caller' },
  ],
  'the storage never answers, and closing the engine waits for the call of the handler': [
    { file: 'api/call-options.test.ts', title: 'ends appendAll while its session is being opened' },
  ],
  'the test aborts after the client has sent the request': [
    { file: 'api/call-options.test.ts', title: 'changes nothing while the token of its caller' },
  ],
  'a server learns later that a client has left, and the test looks at once': [
    { file: 'api/read.test.ts', title: 'a long poll ends when its signal aborts', access: 'server' },
    { file: 'api/read-session.test.ts', title: 'can be cancelled while they wait', access: 'server' },
    {
      file: 'api/record-iteration.test.ts',
      title: 'delivers records in order to calls of next',
      access: 'server',
    },
  ],
  'a client receives batches that became durable together one by one': [
    { file: 'api/read-session.test.ts', title: 'emit appends that became durable together' },
  ],
  'a server sends ahead of a reader as much as the connection holds': [
    {
      file: 'api/read-session.test.ts',
      title: 'that fall behind catch up from the storage',
      access: 'server',
    },
    { file: 'api/read-session.test.ts', title: 'leave no timer and no waiter after reads', access: 'server' },
  ],
  'the test appends while a read begins, which ends at the tail that it finds': [
    { file: 'api/json-stream.test.ts', title: 'follows: as an iterable', access: 'handler' },
  ],
  'the test is of engines that share a storage': [
    { file: 'service/retention.test.ts', title: 'keeps every record for as long as a policy' },
  ],
  'the test uses what is internal to the engine': [
    { file: 'api/read-session.test.ts', title: 'are empty at the tail with wait 0' },
    { file: 'api/producer.test.ts', title: 'a producer keeps its batches within the frame limit' },
    { file: 'service/retention.test.ts', title: 'protects the records of other engines' },
  ],
}
