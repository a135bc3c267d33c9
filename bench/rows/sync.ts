import type { Contestant, Measurement } from '../harness/measurement.ts'

/** Of a record that is mirrored. */
const bytes = 256

/** The records of all devices in a turn. */
const appended = 10_000

export const syncRows: Readonly<Record<string, Measurement>> = {
  mirror: {
    work: `sync: mirror of {size} × ${bytes} B into memory, against a read that keeps nothing`,
    each: 'a record',
    size: 1_000_000,
    exactly: 1,
    ours: { program: 'mirrors', side: 'mirror', params: { bytes } },
    rivals: [
      {
        against: '`readSession` of `@s2-dev/streamstore`',
        contestant: { program: 'clients', side: 'published read', params: { bytes } },
        atLeast: 0.5,
      },
    ],
  },
  'synced-latency': {
    work: 'sync: median from `append` on one device to the view on another, both live, memory',
    each: 'a record',
    exactly: 200,
    ours: { program: 'relay', side: 'synced' },
    rivals: [
      {
        against: 'a bare relay of requests to followers by `node:http`, with Server-Sent Events',
        contestant: { program: 'relay', side: 'relay' },
        atLeast: 0.334,
      },
    ],
  },
  'outbox-1': outboxes(1),
  'outbox-10': outboxes(10),
  'outbox-100': outboxes(100),
  'outbox-10-slowest': slowest(10),
  'outbox-100-slowest': slowest(100),
}

function devices(side: string, devices: number): Contestant {
  return { program: 'devices', side, params: { devices } }
}

function outboxes(number: number): Measurement {
  const what = number === 1 ? 'one device' : `${number} devices`
  return {
    work: `sync: ${what} with an outbox, one stream, 10 × ${bytes} B in flight each, memory`,
    each: 'a record',
    exactly: appended,
    ours: devices('outboxes', number),
    rivals: [
      {
        against: `${number === 1 ? 'a client that appends' : 'as many clients that append'} with \`matchSeqNum\` until it succeeds`,
        contestant: devices('conditional', number),
        atLeast: 0.5,
      },
      {
        against: 'appends without a condition, which may be stored twice',
        contestant: devices('unconditional', number),
      },
      ...(number === 1 ? [] : [{ against: 'one device', contestant: devices('outboxes', 1), atLeast: 0.2 }]),
    ],
  }
}

function slowest(number: number): Measurement {
  return {
    work: `sync: the slowest of ${number} devices, when half of all records are on the server`,
    each: 'a record',
    exactly: appended,
    ours: devices('slowest outbox', number),
    rivals: [
      { against: 'the mean of all devices', contestant: devices('mean outbox', number), atLeast: 0.5 },
    ],
  }
}
