import type { Measurement } from '../harness/measurement.ts'

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
}
