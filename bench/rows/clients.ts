import type { Measurement } from '../harness/measurement.ts'

const program = 'clients'
/** How many times as fast as the published client each row must be. */
const AT_LEAST = 1.2

export const clientRows: Readonly<Record<string, Measurement>> = {
  'client-session-100': {
    work: 'client: append session, batches of 100 × 1 KiB, memory',
    each: 'a record',
    most: 1_000,
    ...both('session', { records: 100 }),
  },
  'client-read-disk': {
    work: 'client: catch-up read of {size} × 1 KiB, filesystem',
    each: 'a record',
    size: 262_144,
    exactly: 1,
    ...both('read', { onDisk: true }),
  },
}

/** Each client with a server of its own, of the same kind. */
function both(work: string, params: Readonly<Record<string, unknown>>): Pick<Measurement, 'ours' | 'rivals'> {
  return {
    ours: { program, side: `headwater ${work}`, params },
    rivals: [
      {
        against: '`@s2-dev/streamstore`',
        contestant: { program, side: `published ${work}`, params },
        atLeast: AT_LEAST,
      },
    ],
  }
}
