import { expect, onTestFinished, vi } from 'vitest'
import { fold } from '../../adapters/fold/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { Outbox } from '../../adapters/sync/outbox.ts'
import type { FaultyStorage } from '../../adapters/testing/index.ts'
import { type Engine, type ErrorCode, HeadwaterError, open, type Stream } from '../../src/index.ts'
import { PRODUCERS_MAX } from '../../src/model/limits.ts'
import { key } from './encryption/support.ts'

/** An engine on a storage that can fail, and another engine that sees what the storage has. */
export interface World {
  readonly hw: Engine
  readonly storage: FaultyStorage
  readonly observer: Engine
  /** A stream of the basin `basin`, which has one record. */
  readonly stream: Stream
  /** A stream of the basin `encrypted`, with one record under `key(1)`. */
  readonly encrypted: Stream
  /** The cipher of the encrypted stream. */
  readonly cipher: { isBroken: boolean }
  /** Sends an HTTP request without authentication. */
  readonly request: (method: string, path: string, init?: RequestInit) => Promise<unknown>
}

export interface Case {
  /** What is wrong, if the code has several causes. */
  readonly title?: string
  /** Makes the failing call. What it does before resolving belongs to the state before the call. */
  readonly fail: (world: World) => Promise<() => Promise<unknown>>
  /** Ends the cause of the failure, for codes that are retryable. */
  readonly heal?: (world: World) => unknown
  /** Repeats the call. Default: the failing call. */
  readonly retry?: (world: World) => Promise<unknown>
  /** Whether the failed call has changed the state. Default: false. */
  readonly hasEffect?: boolean
}

/** A case that needs no preparation. */
const when = (call: (world: World) => Promise<unknown>, more: Omit<Case, 'fail'> = {}): Case => ({
  fail: async (world) => () => call(world),
  ...more,
})

const heal = ({ storage }: World): void => storage.heal()
const FOLD = { initial: 0, reduce: (count: number) => count + 1, version: 1 }
const failing = (): number => {
  throw new Error('a defect')
}
const JSON_TYPE = { headers: { 'content-type': 'application/json', 'svc-basin': 'basin' } }

const batchOf = (seq: number, epoch = 0) => ({ producer: { id: 'p', epoch, seq } })

/** The code of the access tokens. */
export const TOKENS = '../../src/engine/service/tokens/index.ts'
/** An outbox that has as many records as it may have. */
let full: Outbox | undefined

/** Failing calls by code. */
export const CASES: Readonly<Record<ErrorCode, readonly Case[]>> = {
  access_token_not_found: [when(({ hw }) => hw.revokeAccessToken('none'))],
  append_discarded: [
    {
      async fail({ stream, storage }) {
        storage.failNext('append', { kind: 'io' })
        const session = await stream.appendSession()
        const [, ticket] = await Promise.all(['a', 'b'].map((body) => session.submit(body)))
        return () => ticket!.ack()
      },
      retry: async ({ stream }) => (await (await stream.appendSession()).submit('b')).ack(),
    },
  ],
  authn: [when(({ hw }) => hw.as('unknown').listBasins())],
  bad_frame: [
    when(({ request }) =>
      request('POST', '/v1/streams/stream/records', {
        headers: { 'content-type': 's2s/proto', 'svc-basin': 'basin' },
        body: new Uint8Array([0, 0, 0]),
      }),
    ),
  ],
  bad_header: [when(({ request }) => request('GET', '/v1/streams'))],
  bad_json: [when(({ request }) => request('POST', '/v1/basins', { ...JSON_TYPE, body: '{' }))],
  bad_path: [when(({ request }) => request('DELETE', '/v1/streams/%ff', JSON_TYPE))],
  bad_proto: [
    when(({ request }) =>
      request('POST', '/v1/streams/stream/records', {
        headers: { 'content-type': 'application/protobuf', 'svc-basin': 'basin' },
        body: new Uint8Array([10, 99]),
      }),
    ),
  ],
  bad_query: [when(({ request }) => request('GET', '/v1/streams/stream/records?seq_num=x', JSON_TYPE))],
  basin_deletion_pending: [
    {
      async fail({ hw, storage }) {
        // Keeps background work from completing the deletion.
        storage.fail('list')
        await hw
          .basin('basin')
          .delete()
          .catch(() => {})
        return () => hw.basin('basin').createStream('new')
      },
    },
  ],
  basin_not_found: [when(({ hw }) => hw.basin('none').reconfigure({}))],
  closed: [
    {
      title: 'the engine',
      async fail({ hw, stream }) {
        await hw.close()
        return () => stream.append('x')
      },
    },
    {
      title: 'the session',
      async fail({ stream }) {
        const session = await stream.appendSession()
        await session.close()
        return () => session.submit('x')
      },
    },
    {
      title: 'the producer',
      async fail({ stream }) {
        const producer = stream.producer()
        await producer.close()
        return () => producer.submit('x')
      },
    },
    {
      title: 'the storage',
      async fail({ stream, storage }) {
        storage.fail('append', { kind: 'closed' })
        return () => stream.append('x')
      },
    },
  ],
  decryption_failed: [
    when(({ hw }) =>
      hw
        .basin('encrypted')
        .stream('stream', { encryptionKey: key(2) })
        .readBatch({ seqNum: 0 }),
    ),
  ],
  encryption_key_invalid: [
    { title: 'missing', ...when(({ hw }) => hw.basin('encrypted').stream('stream').append('x')) },
    {
      title: 'malformed',
      ...when(({ hw }) => hw.basin('encrypted').stream('stream', { encryptionKey: 'AAAA' }).append('x')),
    },
  ],
  fencing_token_mismatch: [when(({ stream }) => stream.append('x', { fencingToken: 'other' }))],
  history_trimmed: [
    {
      async fail({ stream }) {
        await stream.append('second')
        await stream.trim(1)
        return () => fold(stream, FOLD).loaded()
      },
    },
  ],
  invalid: [
    { title: 'a batch', ...when(({ stream }) => stream.append([])) },
    { title: 'options', ...when(() => open({ storage: memory(), trimGraceMs: -1 })) },
  ],
  other: [
    {
      title: 'a cipher that fails',
      async fail({ encrypted, cipher }) {
        cipher.isBroken = true
        return () => encrypted.append('x')
      },
      heal({ cipher }) {
        cipher.isBroken = false
      },
    },
  ],
  permission_denied: [
    {
      async fail({ hw }) {
        const token = await hw.issueAccessToken({ id: 'reader', scope: { ops: ['list-basins'] } })
        return () => hw.as(token).createBasin('new')
      },
    },
  ],
  range_not_satisfiable: [when(({ stream }) => stream.readBatch({ seqNum: 7 }))],
  rate_limited: [
    {
      async fail({ stream }) {
        limitingSession = await stream.appendSession()
        return () => stream.appendSession()
      },
      heal: () => limitingSession?.close(),
    },
  ],
  outbox_full: [
    {
      async fail({ hw, stream }) {
        full = new Outbox(hw.basin('basin').stream('outbox'), stream, { recordsMax: 1 })
        await full.append('first')
        return () => full!.append('second')
      },
      async heal() {
        void full!.run(new AbortController().signal)
        await full!.flush()
      },
    },
  ],
  outcome_unknown: [
    {
      async fail({ stream }) {
        const device = await open({ storage: memory() })
        onTestFinished(() => device.close())
        // Stores the records, and trims them before the outbox can know.
        const append = async (records: readonly string[]) => {
          const { end } = await stream.append(records)
          await stream.trim(end.seqNum)
          throw new HeadwaterError('unavailable', 'lost response')
        }
        const remote = {
          append,
          checkTail: () => stream.checkTail(),
          read: (...query: Parameters<Stream['read']>) => stream.read(...query),
          // Another read would be one more than the limit of this engine; nothing is left.
          readBatch: async () => ({ records: [] }),
        } as unknown as Stream
        const box = new Outbox(device.basin('basin').stream('outbox'), remote, {
          wakeUps: (wakeUp) => {
            queueMicrotask(wakeUp)
            return () => {}
          },
        })
        void box.run(new AbortController().signal)
        return async () => {
          const appended = await box.append('x')
          await vi.waitFor(() => expect(box.failed).toHaveLength(1), { timeout: 10_000 })
          await box.discard(box.failed[0]!.number)
          return appended.confirmed().finally(() => box.close())
        }
      },
      hasEffect: true,
    },
  ],
  reducer_failed: [when(({ stream }) => fold(stream, { ...FOLD, reduce: failing }).loaded())],
  resource_already_exists: [when(({ hw }) => hw.createBasin('basin'))],
  already_appended: [
    {
      async fail({ stream }) {
        for (const seq of [0, 1]) await stream.append('x', batchOf(seq))
        return () => stream.append('x', batchOf(0))
      },
    },
  ],
  producer_fenced: [
    {
      async fail({ stream }) {
        await stream.append('x', batchOf(0, 1))
        return () => stream.append('x', batchOf(0, 0))
      },
    },
  ],
  producer_gap: [when(({ stream }) => stream.append('x', batchOf(1)))],
  too_many_producers: [
    {
      async fail({ stream }) {
        const ids = Array.from({ length: PRODUCERS_MAX }, (_, i) => `p${i}`)
        await Promise.all(ids.map((id) => stream.append('x', { producer: { id, epoch: 0, seq: 0 } })))
        return () => stream.append('x', batchOf(0))
      },
    },
  ],
  stream_seq_not_increasing: [
    {
      async fail({ stream }) {
        await stream.append('x', { streamSeq: '2' })
        return () => stream.append('x', { streamSeq: '1' })
      },
    },
  ],
  stream_closed: [
    {
      async fail({ stream }) {
        await stream.close()
        return () => stream.append('x')
      },
    },
  ],
  seq_num_mismatch: [when(({ stream }) => stream.append('x', { matchSeqNum: 7 }))],
  storage: [
    {
      title: 'before an append',
      async fail({ stream, storage }) {
        storage.fail('append', { kind: 'io' })
        return () => stream.append('x')
      },
      heal,
    },
    {
      title: 'after an append',
      async fail({ stream, storage }) {
        storage.fail('append', { kind: 'io', after: true })
        return () => stream.append('x')
      },
      heal,
      hasEffect: true,
    },
    {
      title: 'after a creation',
      async fail({ hw, storage }) {
        storage.fail('commit', { kind: 'io', after: true })
        return () => hw.ensureBasin('new')
      },
      heal,
      hasEffect: true,
    },
  ],
  storage_full: [
    {
      title: 'before an append',
      async fail({ stream, storage }) {
        storage.fail('append', { kind: 'quota' })
        return () => stream.append('x')
      },
      heal,
    },
    {
      title: 'with an unknown outcome',
      async fail({ stream, storage }) {
        storage.fail('append', { kind: 'quota', after: true })
        return () => stream.append('x')
      },
      heal,
      hasEffect: true,
    },
  ],
  stream_deleted: [
    {
      async fail({ hw, stream }) {
        const records = stream.follow({ seqNum: 0 })[Symbol.asyncIterator]()
        await records.next()
        const next = records.next()
        next.catch(() => {})
        await hw.basin('basin').stream('stream').delete()
        return () => next
      },
    },
  ],
  stream_deletion_pending: [
    {
      async fail({ hw, stream }) {
        const session = await stream.appendSession()
        await hw.basin('basin').stream('stream').delete()
        return async () => (await session.submit('x')).ack()
      },
    },
  ],
  stream_not_found: [when(({ hw }) => hw.basin('basin').stream('none').delete())],
  transaction_conflict: [
    {
      async fail({ hw, storage }) {
        storage.fail('commit', { kind: 'conflict' })
        return () => hw.createBasin('new')
      },
      heal,
    },
  ],
  unavailable: [
    {
      title: 'code that cannot be loaded',
      async fail({ hw }) {
        vi.doMock(TOKENS, () => {
          throw new TypeError('Failed to fetch dynamically imported module')
        })
        return () => hw.createRootToken()
      },
      heal() {
        vi.doUnmock(TOKENS)
      },
    },
  ],
  undecodable_record: [
    {
      async fail({ stream }) {
        await stream.append('{')
        return () => stream.json().readBatch({ seqNum: 1 })
      },
    },
  ],
  unsupported: [
    { title: 'counters without metering', ...when(({ hw }) => hw.counters()) },
    {
      title: 'metrics without metering',
      ...when(({ hw }) => hw.metrics({ set: 'active-basins', start: 0, end: 1 })),
    },
  ],
}

let limitingSession: { close(): Promise<void> } | undefined
