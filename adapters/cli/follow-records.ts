import type { Clock, SequencedRecord } from '../../src/index.ts'
import { meteredBytesOf } from '../../src/model/record.ts'
import { onAbort } from '../../src/runtime/abort.ts'
import { position } from './append-records.ts'
import { ConnectionError, ServiceError } from './errors.ts'
import { type RecordQuery, readRecords } from './print-records.ts'
import { resourcePath } from './stream-name.ts'

const FIRST_PAUSE_MS = 200
const PAUSE_MS_MAX = 5_000
/** Errors of a server that is stopping, starting or busy. */
const TRANSIENT: readonly string[] = ['unavailable', 'rate_limited']

export interface FollowOptions {
  readonly clock: Clock
  /** Called once for each loss of the connection. */
  readonly report: (line: string) => void
}

/**
 * Follows a stream of a server. After a lost connection it reads on from the record after the last one, and
 * tries again, with growing pauses, until the signal of the client aborts. Rejects if the first read fails.
 */
export async function* followRecords(
  first: RecordQuery,
  { clock, report }: FollowOptions,
): AsyncGenerator<readonly SequencedRecord[]> {
  const { client } = first
  let query = await absoluteQuery(first)
  let hasOpened = false
  let attempts = 0
  const onOpen = () => {
    hasOpened = true
    attempts = 0
  }
  for (;;) {
    try {
      for await (const records of readRecords({ ...first, query, onOpen })) {
        query = queryAfter(query, records)
        yield records
      }
      if ('count' in query || 'bytes' in query || 'until' in query) return
      throw new ConnectionError('the server has ended the read')
    } catch (error) {
      if (!hasOpened || !isTransient(error) || client.signal.aborted) throw error
      if (query.count === 0 || query.bytes === 0) return
      if (attempts === 0) report(`headwater: ${error.message}; reconnecting, Ctrl+C stops`)
    }
    await pause(clock, Math.min(FIRST_PAUSE_MS * 2 ** attempts, PAUSE_MS_MAX), client.signal)
    client.signal.throwIfAborted()
    attempts++
  }
}

/** Replaces a distance from the tail, which would mean other records after the stream has grown. */
async function absoluteQuery({ client, name, query }: RecordQuery): Promise<RecordQuery['query']> {
  const { tail_offset: tailOffset, ...others } = query
  if (tailOffset === undefined) return query
  const call = { method: 'GET', path: `${resourcePath(name)}/records/tail`, basin: name.basin } as const
  try {
    const tail = await client.json(call, (answer) => position(answer, 'tail'))
    return { ...others, seq_num: Math.max(0, tail.seqNum - tailOffset) }
  } catch (error) {
    // The token may permit only to read.
    if (error instanceof ServiceError && error.code === 'permission_denied') return query
    throw error
  }
}

/** The rest of a read after the records that have arrived. */
function queryAfter(
  { tail_offset: _offset, timestamp: _timestamp, count, bytes, ...others }: RecordQuery['query'],
  records: readonly SequencedRecord[],
): RecordQuery['query'] {
  const metered = records.reduce((sum, { headers, body }) => sum + meteredBytesOf(headers, body), 0)
  return {
    ...others,
    seq_num: records.at(-1)!.seqNum + 1,
    ...(count !== undefined && { count: Math.max(0, count - records.length) }),
    ...(bytes !== undefined && { bytes: Math.max(0, bytes - metered) }),
  }
}

function isTransient(error: unknown): error is Error {
  if (error instanceof ServiceError) return TRANSIENT.includes(error.code)
  return error instanceof ConnectionError
}

/** Resolves after a time, or when the signal aborts. */
function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    const end = () => {
      cancel()
      ignore()
      resolve()
    }
    const cancel = clock.schedule(ms, end)
    const ignore = onAbort(signal, end)
  })
}
