import type { Measurement, Rival } from '../harness/measurement.ts'

const program = 'clients'
/** How many times as fast as the published client each row must be. */
const AT_LEAST = 1.2

export const clientRows: Readonly<Record<string, Measurement>> = {
  'client-append': {
    work: 'client: append of 1 KiB, one after another, memory',
    each: 'an append',
    most: 20_000,
    ...both('append', {}),
  },
  'client-session-10': session(10),
  'client-session-100': session(100),
  'client-session-900': session(900),
  'client-session-900-disk': session(900, { onDisk: true }),
  'client-session-10-fetch': session(10, { overFetch: true }),
  'client-session-100-fetch': session(100, { overFetch: true }),
  'client-session-900-fetch': session(900, { overFetch: true }),
  'client-read': read({}),
  'client-read-disk': read({ onDisk: true }),
}

function session(
  records: number,
  where: { readonly onDisk?: boolean; readonly overFetch?: boolean } = {},
): Measurement {
  const over = where.overFetch === true ? ', over `fetch`, as in browsers' : ''
  return {
    work: `client: append session${over}, batches of ${records} × 1 KiB, ${where.onDisk ? 'filesystem' : 'memory'}`,
    each: 'a record',
    most: Math.ceil(100_000 / records),
    ...both('session', { records, ...where }),
    // Both wait for the disk of their servers.
    ...(where.onDisk === true && {
      rivals: [
        { ...published('session', { records, ...where }), atLeast: 1 },
        {
          ...published('session', { records, ...where }),
          against: '`@s2-dev/streamstore`, CPU time',
          by: 'cpu',
        },
      ],
    }),
  }
}

function read(where: { readonly onDisk?: boolean }): Measurement {
  return {
    work: `client: catch-up read of {size} × 1 KiB, ${where.onDisk ? 'filesystem' : 'memory'}`,
    each: 'a record',
    size: 262_144,
    exactly: 1,
    ...both('read', where),
  }
}

/** Each client with a server of its own, of the same kind. */
function both(work: string, params: Readonly<Record<string, unknown>>): Pick<Measurement, 'ours' | 'rivals'> {
  return {
    ours: { program, side: `headwater ${work}`, params },
    rivals: [published(work, params)],
  }
}

function published(work: string, params: Readonly<Record<string, unknown>>): Rival {
  return {
    against: '`@s2-dev/streamstore`',
    contestant: { program, side: `published ${work}`, params },
    atLeast: AT_LEAST,
  }
}
