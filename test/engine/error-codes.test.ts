import { expect, it, onTestFinished } from 'vitest'
import { memory } from '../../adapters/storage/memory/index.ts'
import { type FaultyStorage, faultyStorage, virtualClock } from '../../adapters/testing/index.ts'
import { type Engine, type ErrorCode, HeadwaterError, open, type Stream } from '../../src/index.ts'
import { ERROR_KINDS } from '../../src/model/errors.ts'
import { aesOfNode, key } from './encryption/support.ts'

/** An engine on a storage that can fail, and another engine that sees what the storage has. */
interface World {
  readonly hw: Engine
  readonly storage: FaultyStorage
  readonly observer: Engine
  /** A stream of the basin `basin`, which has one record. */
  readonly stream: Stream
  /** A stream of the basin `encrypted`, with one record under `key(1)`. */
  readonly encrypted: Stream
  /** The cipher of the encrypted stream. */
  readonly cipher: { isBroken: boolean }
}

/** Makes ready for a failing call, and returns it. */
type Prepare = (world: World) => Promise<() => Promise<unknown>>

interface More {
  /** Ends the cause of a failure that is retryable. Default: heals the storage. */
  readonly heal?: (world: World) => unknown
  /** Repeats the call. Default: the failing call. */
  readonly retry?: (world: World) => Promise<unknown>
  /** Whether the failed call has changed the state. */
  readonly hasEffect?: boolean
}

/** A call that fails without preparation. */
const of =
  (call: (world: World) => Promise<unknown>): Prepare =>
  async (world) =>
  () =>
    call(world)

/** Calls that append to the stream or create a basin on a storage that fails. */
const appending =
  (...failure: Parameters<FaultyStorage['fail']>): Prepare =>
  async ({ stream, storage }) => {
    storage.fail(...failure)
    return () => stream.append('x')
  }
const creating =
  (...failure: Parameters<FaultyStorage['fail']>): Prepare =>
  async ({ hw, storage }) => {
    storage.fail(...failure)
    return () => hw.ensureBasin('new')
  }

const batchOf = (seq: number, epoch = 0) => ({ producer: { id: 'p', epoch, seq } })
const AFTER = { hasEffect: true } as const

let limitingSession: { close(): Promise<void> } | undefined

/** Those of the wire, of folds and of outboxes are tested with those. */
const CASES: [code: ErrorCode, cause: string, prepare: Prepare, more?: More][] = [
  ['access_token_not_found', 'a revocation', of(({ hw }) => hw.revokeAccessToken('none'))],
  [
    'append_discarded',
    'an append behind a failed one',
    async ({ stream, storage }) => {
      storage.failNext('append', { kind: 'io' })
      const session = await stream.appendSession()
      const [, ticket] = await Promise.all(['a', 'b'].map((body) => session.submit(body)))
      return () => ticket!.ack()
    },
    { retry: async ({ stream }) => (await (await stream.appendSession()).submit('b')).ack() },
  ],
  ['authn', 'an unknown token', of(({ hw }) => hw.as('unknown').listBasins())],
  [
    'basin_deletion_pending',
    'a basin that is being deleted',
    async ({ hw, storage }) => {
      // Keeps background work from completing the deletion.
      storage.fail('list')
      await hw
        .basin('basin')
        .delete()
        .catch(() => {})
      return () => hw.basin('basin').createStream('new')
    },
  ],
  ['basin_not_found', 'a missing basin', of(({ hw }) => hw.basin('none').reconfigure({}))],
  [
    'closed',
    'a closed engine',
    async ({ hw, stream }) => {
      await hw.close()
      return () => stream.append('x')
    },
  ],
  [
    'closed',
    'a closed session',
    async ({ stream }) => {
      const session = await stream.appendSession()
      await session.close()
      return () => session.submit('x')
    },
  ],
  ['closed', 'a closed storage', appending('append', { kind: 'closed' })],
  [
    'decryption_failed',
    'another key',
    of(({ hw }) =>
      hw
        .basin('encrypted')
        .stream('stream', { encryptionKey: key(2) })
        .readBatch({ seqNum: 0 }),
    ),
  ],
  ['encryption_key_invalid', 'no key', of(({ hw }) => hw.basin('encrypted').stream('stream').append('x'))],
  [
    'fencing_token_mismatch',
    'a condition',
    of(({ stream }) => stream.append('x', { fencingToken: 'other' })),
  ],
  ['seq_num_mismatch', 'a condition', of(({ stream }) => stream.append('x', { matchSeqNum: 7 }))],
  [
    'history_trimmed',
    'a fork of trimmed records',
    async ({ hw, stream }) => {
      await stream.append('second')
      await stream.trim(2)
      return () => hw.basin('basin').createStream('fork', {}, { fork: { stream: 'stream', seqNum: 1 } })
    },
  ],
  ['invalid', 'an empty batch', of(({ stream }) => stream.append([]))],
  ['invalid', 'an option', of(() => open({ storage: memory(), trimGraceMs: -1 }))],
  [
    'other',
    'a cipher that fails',
    async ({ encrypted, cipher }) => {
      cipher.isBroken = true
      return () => encrypted.append('x')
    },
    {
      heal({ cipher }) {
        cipher.isBroken = false
      },
    },
  ],
  [
    'permission_denied',
    'a token that permits something else',
    async ({ hw }) => {
      const token = await hw.issueAccessToken({ id: 'reader', scope: { ops: ['list-basins'] } })
      return () => hw.as(token).createBasin('new')
    },
  ],
  ['range_not_satisfiable', 'a start beyond the tail', of(({ stream }) => stream.readBatch({ seqNum: 7 }))],
  [
    'rate_limited',
    'too many sessions',
    async ({ stream }) => {
      limitingSession = await stream.appendSession()
      return () => stream.appendSession()
    },
    { heal: () => limitingSession?.close() },
  ],
  ['resource_already_exists', 'a creation', of(({ hw }) => hw.createBasin('basin'))],
  [
    'already_appended',
    'an earlier batch of a producer',
    async ({ stream }) => {
      for (const seq of [0, 1]) await stream.append('x', batchOf(seq))
      return () => stream.append('x', batchOf(0))
    },
  ],
  [
    'producer_fenced',
    'a producer of an earlier epoch',
    async ({ stream }) => {
      await stream.append('x', batchOf(0, 1))
      return () => stream.append('x', batchOf(0, 0))
    },
  ],
  ['producer_gap', 'a batch of a producer', of(({ stream }) => stream.append('x', batchOf(1)))],
  [
    'stream_seq_not_increasing',
    'a condition',
    async ({ stream }) => {
      await stream.append('x', { streamSeq: '2' })
      return () => stream.append('x', { streamSeq: '1' })
    },
  ],
  [
    'stream_closed',
    'a closed stream',
    async ({ stream }) => {
      await stream.close()
      return () => stream.append('x')
    },
  ],
  ['storage', 'a failure before an append', appending('append', { kind: 'io' })],
  ['storage', 'a failure after an append', appending('append', { kind: 'io', after: true }), AFTER],
  ['storage', 'a failure after a creation', creating('commit', { kind: 'io', after: true }), AFTER],
  ['storage_full', 'a failure before an append', appending('append', { kind: 'quota' })],
  ['storage_full', 'a failure after an append', appending('append', { kind: 'quota', after: true }), AFTER],
  ['transaction_conflict', 'a conflict', creating('commit', { kind: 'conflict' })],
  [
    'stream_deleted',
    'a follower',
    async ({ stream }) => {
      const records = stream.follow({ seqNum: 0 })[Symbol.asyncIterator]()
      await records.next()
      const next = records.next()
      next.catch(() => {})
      await stream.delete()
      return () => next
    },
  ],
  [
    'stream_deletion_pending',
    'a session of a deleted stream',
    async ({ stream }) => {
      const session = await stream.appendSession()
      await stream.delete()
      return async () => (await session.submit('x')).ack()
    },
  ],
  ['stream_not_found', 'a missing stream', of(({ hw }) => hw.basin('basin').stream('none').delete())],
  [
    'undecodable_record',
    'a record that is no JSON',
    async ({ stream }) => {
      await stream.append('{')
      return () => stream.json().readBatch({ seqNum: 1 })
    },
  ],
  ['unsupported', 'counters without metering', of(({ hw }) => hw.counters())],
]

async function openWorld(): Promise<World> {
  const inner = memory()
  const storage = faultyStorage(inner)
  const clock = virtualClock({ now: 1_000_000 })
  const cipher = { isBroken: false }
  const seal: typeof aesOfNode.seal = (...args) => {
    if (cipher.isBroken) throw new Error('out of entropy')
    return aesOfNode.seal(...args)
  }
  const hw = await open({ storage, clock, limits: { openSessions: 1 }, ciphers: [{ ...aesOfNode, seal }] })
  const observer = await open({ storage: inner, clock, autoCreate: false })
  await hw.createBasin('basin')
  await hw.createBasin('encrypted', { streamCipher: 'aes-256-gcm' })
  const stream = hw.basin('basin').stream('stream')
  const encrypted = hw.basin('encrypted').stream('stream', { encryptionKey: key(1) })
  for (const each of [stream, encrypted]) await each.append('first')
  onTestFinished(async () => {
    storage.heal()
    await Promise.all([hw.close(), observer.close()])
  })
  return { hw, storage, observer, stream, encrypted, cipher }
}

/** Everything that calls can change. */
async function stateOf({ observer }: World): Promise<unknown> {
  const basins = []
  for await (const info of observer.listAllBasins()) {
    const basin = observer.basin(info.name)
    const streams = []
    for await (const { name } of basin.listAllStreams()) {
      streams.push([name, await basin.stream(name).checkTail(), await basin.stream(name).config()])
    }
    basins.push([info, await basin.config(), streams])
  }
  return { basins, tokens: (await observer.listAccessTokens()).items }
}

const failureOf = (call: () => Promise<unknown>): Promise<unknown> =>
  call().then(
    () => undefined,
    (error) => error,
  )

it.each(CASES)('`%s` of %s has flags that agree with what happened', async (code, _, prepare, more = {}) => {
  const kind = ERROR_KINDS[code]
  const { heal = ({ storage }: World) => storage.heal(), retry, hasEffect = false } = more
  const world = await openWorld()
  const call = await prepare(world)
  const before = await stateOf(world)
  const error = await failureOf(call)
  expect(HeadwaterError.is(error) && error.code).toBe(code)
  const { status, retryable, mayHaveEffects } = error as HeadwaterError
  expect({ status, retryable }).toEqual({ status: kind.status, retryable: kind.retryable })
  const after = await stateOf(world)
  if (hasEffect) expect(after).not.toEqual(before)
  else expect(after).toEqual(before)
  expect(mayHaveEffects || !hasEffect).toBe(true)
  // An error may exclude effects that its code allows, but not the other way round.
  expect(kind.mayHaveEffects || !mayHaveEffects).toBe(true)
  if (!retryable) return
  await heal(world)
  expect(await failureOf(retry === undefined ? call : () => retry(world))).toBeUndefined()
})
