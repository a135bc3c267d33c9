import type { Contestant, Measurement } from '../harness/measurement.ts'

/** The records of all devices in a turn. */
const appended = 10_000

export const syncRows: Readonly<Record<string, Measurement>> = {
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
  'outbox-10': outboxes(10),
}

function devices(side: string, devices: number): Contestant {
  return { program: 'devices', side, params: { devices } }
}

function outboxes(number: number): Measurement {
  return {
    work: `sync: ${number} devices with an outbox, one stream, 10 × 256 B in flight each, memory`,
    each: 'a record',
    exactly: appended,
    ours: devices('outboxes', number),
    rivals: [
      {
        against: 'as many clients that append with `matchSeqNum` until it succeeds',
        contestant: devices('conditional', number),
        atLeast: 0.5,
      },
      {
        against: 'appends without a condition, which may be stored twice',
        contestant: devices('unconditional', number),
      },
    ],
  }
}
