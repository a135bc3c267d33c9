// @module-tag slow

import { PGlite } from '@electric-sql/pglite'
import fc from 'fast-check'
import { Pool } from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { NOW, WHOLE_LOG } from '../../../adapters/conformance/blocks.ts'
import { LogWriter, reclaimAll } from '../../../adapters/conformance/log-writer.ts'
import { type PostgresOptions, postgres } from '../../../adapters/storage/postgres/index.ts'
import { virtualClock } from '../../../adapters/testing/index.ts'
import { isReclaimable, reclaimTimes } from '../../../src/core/retention.ts'
import { open, type Stream, systemClock } from '../../../src/index.ts'
import type { StorageContext, StorageSession } from '../../../src/storage/contract.ts'
import { type Intercept, interceptingClient, sqlError } from './intercepting-client.ts'
import { newSchema } from './schemas.ts'

const CONTEXT: StorageContext = { clock: systemClock, onLogChanged() {} }

let pglite: PGlite
beforeAll(async () => {
  pglite = await PGlite.create()
})
afterAll(() => pglite.close())

async function openSession(options: PostgresOptions): Promise<StorageSession> {
  const session = await postgres(options).open(CONTEXT)
  onTestFinished(() => session.close())
  return session
}

const intercepting = (intercept: Intercept) => interceptingClient(pglite, intercept)

const isAppend = (text: string) => text.startsWith('WITH head AS')

async function follow(stream: Stream, count: number, bodies: string[]): Promise<void> {
  for await (const { body } of stream.follow({ seqNum: 0 })) {
    bodies.push(body)
    if (bodies.length === count) return
  }
}

describe('options', () => {
  test.each<[string, unknown, string]>([
    ['nothing', {}, 'postgres requires either `connectionString` or `client`'],
    [
      'both places',
      { connectionString: 'postgres://a', client: { query() {} } },
      'postgres requires either `connectionString` or `client`',
    ],
    ['a client without `query`', { client: {} }, '`client` must be a client with a method `query`'],
    [
      'an unknown option',
      { conectionString: 'postgres://a' },
      'unknown member `conectionString`; expected `connectionString`, `client`, `schema`, `connectionsMax`, `listen`, `listenConnectionString`, `readOnly`, `retryMs`',
    ],
    [
      'no connections',
      { connectionString: 'postgres://a', connectionsMax: 0 },
      '`connectionsMax` must be a positive integer',
    ],
    [
      'a schema without a name',
      { connectionString: 'postgres://a', schema: '' },
      '`schema` must have 1 to 63 bytes and no U+0000',
    ],
    [
      'a negative time',
      { connectionString: 'postgres://a', retryMs: -1 },
      '`retryMs` must be a number of milliseconds, at least 0',
    ],
  ])('rejects %s', (_, options, message) => {
    expect(() => postgres(options as PostgresOptions)).toThrow(
      expect.objectContaining({ code: 'invalid', message }),
    )
  })
})

describe('notifications', () => {
  const DATABASE = 'postgres://localhost/app'
  const POOLER = `${DATABASE}?pgbouncer=true`

  test.each<[string, PostgresOptions, string]>([
    ['a database', { connectionString: DATABASE }, 'hint'],
    ['a pooler', { connectionString: POOLER }, 'none'],
    ['a pooler beside its database', { connectionString: POOLER, listenConnectionString: DATABASE }, 'hint'],
    ['a pool', { client: new Pool({ connectionString: DATABASE }) }, 'hint'],
    ['a pool with a single connection', { client: new Pool({ max: 1 }) }, 'none'],
    ['a pool that leads to a pooler', { client: new Pool({ connectionString: POOLER }) }, 'none'],
    ['a client that only has `query`', { client: { query: async () => ({ rows: [] }) } }, 'none'],
  ])('%s has the notifications that it can deliver', (_, options, notifications) => {
    expect(postgres(options).manifest.notifications).toBe(notifications)
  })
})

describe('tables', () => {
  test('several sessions that open at once create them once', async () => {
    const schema = newSchema()
    const client = pglite
    const sessions = await Promise.all(Array.from({ length: 5 }, () => openSession({ client, schema })))
    await sessions[0]!.commit([{ kind: 'put', collection: 'settings', key: 'a', value: 1 }])
    expect((await sessions[4]!.get('settings', 'a'))?.value).toBe(1)
  })

  test.each([
    [1, ': use another schema, or drop this one, which an earlier preview has left'],
    [99, ''],
  ])('of version %i are rejected', async (version, remedy) => {
    const schema = newSchema()
    await (await openSession({ client: pglite, schema })).close()
    await pglite.query(`UPDATE ${schema}.format SET version = ${version}`)
    const message = `the tables in schema "${schema}" have version ${version}; this version of headwater reads 2`
    await expect(openSession({ client: pglite, schema })).rejects.toHaveProperty('message', message + remedy)
  })
})

describe('appends', () => {
  test.each(['40001', '40P01', '55P03', '25006'])(
    'a statement that fails with %s is repeated',
    async (code) => {
      let failures = 3
      const client = intercepting((text) =>
        isAppend(text) && failures-- > 0 ? Promise.reject(sqlError(code)) : undefined,
      )
      const hw = await open({ storage: postgres({ client, schema: newSchema() }) })
      const stream = hw.basin('basin').stream('a')
      await stream.append('x')
      expect(await stream.checkTail()).toMatchObject({ seqNum: 1 })
      expect(failures).toBeLessThan(0)
      await hw.close()
    },
  )

  test.each<[string, boolean]>([
    ['was committed', true],
    ['was not', false],
  ])('an append whose connection is lost is stored once if it %s', async (_, isCommitted) => {
    let losses = 2
    const client = intercepting((text, run) => {
      if (!isAppend(text) || losses-- <= 0) return undefined
      const loseConnection = () => Promise.reject(new Error('Connection terminated unexpectedly'))
      return isCommitted ? run().then(loseConnection) : loseConnection()
    })
    const hw = await open({ storage: postgres({ client, schema: newSchema() }) })
    const stream = hw.basin('basin').stream('a')
    const ack = await stream.append('x')
    expect(ack).toMatchObject({ start: { seqNum: 0 }, end: { seqNum: 1 } })
    await stream.append('y')
    expect((await stream.readBatch({ seqNum: 0 })).records.map(({ body }) => body)).toEqual(['x', 'y'])
    await hw.close()
  })

  test('a committed append is found although another process appended after it', async () => {
    const schema = newSchema()
    const other = await open({ storage: postgres({ client: pglite, schema }) })
    let isLost = false
    const client = intercepting((text, run) => {
      if (!isAppend(text) || isLost) return undefined
      isLost = true
      return run().then(async () => {
        await other.basin('basin').stream('a').append('of the other')
        throw new Error('Connection terminated unexpectedly')
      })
    })
    const hw = await open({ storage: postgres({ client, schema }) })
    const stream = hw.basin('basin').stream('a')
    const ack = await stream.append('x')
    expect(ack.start.seqNum).toBe(0)
    expect((await stream.readBatch({ seqNum: 0 })).records.map(({ body }) => body)).toEqual([
      'x',
      'of the other',
    ])
    await hw.close()
    await other.close()
  })

  test('an append that fails states whether it may be stored', async () => {
    let error: Error | undefined
    const client = intercepting((text) => (isAppend(text) && error ? Promise.reject(error) : undefined))
    const hw = await open({ storage: postgres({ client, schema: newSchema(), retryMs: 0 }) })
    const stream = hw.basin('basin').stream('a')
    await stream.append('x')
    for (const [thrown, code, mayHaveEffects] of [
      [sqlError('57014'), 'storage', false],
      [sqlError('53100'), 'storage_full', false],
      [sqlError('08006'), 'storage', true],
      [sqlError('40003'), 'storage', true],
      [Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }), 'storage', true],
    ] as const) {
      error = thrown
      await expect(stream.append('y')).rejects.toMatchObject({ code, mayHaveEffects })
    }
    error = undefined
    await hw.close()
  })
})

describe('commits', () => {
  test.each<[string, boolean]>([
    ['was made', true],
    ['was not', false],
  ])('a commit whose connection is lost takes effect once if it %s', async (_, isCommitted) => {
    let losses = 0
    const client = intercepting((text, run) => {
      if (!text.startsWith('WITH "commit"') || losses-- <= 0) return undefined
      const loseConnection = () => Promise.reject(new Error('Connection terminated unexpectedly'))
      return isCommitted ? run().then(loseConnection) : loseConnection()
    })
    const session = await openSession({ client, schema: newSchema() })
    losses = 2
    await session.commit([{ kind: 'put', collection: 'settings', key: 'a', value: 1, expect: null }])
    expect((await session.get('settings', 'a'))?.value).toBe(1)
    losses = 1
    await expect(
      session.commit([{ kind: 'put', collection: 'settings', key: 'a', value: 2, expect: null }]),
    ).rejects.toThrow('not as expected')
  })

  test('a check waits for the commit that changes the document', async () => {
    const session = await openSession({ client: pglite, schema: newSchema() })
    const keys = ['a', 'b']
    const put = (key: string) => ({ kind: 'put', collection: 'settings', key, value: 1 }) as const
    await session.commit(keys.map(put))
    const versions = await Promise.all(keys.map((key) => session.get('settings', key)))
    const check = (i: number) =>
      ({ kind: 'check', collection: 'settings', key: keys[i]!, expect: versions[i]!.version }) as const
    const results = await Promise.allSettled([
      session.commit([check(0), put('b')]),
      session.commit([check(1), put('a')]),
    ])
    expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
  })
})

describe('reclaim', () => {
  test.each([
    ['appends to', false, null],
    ['trims', true, NOW],
  ])('ends while another engine %s the log before each statement', async (_, isTrimming, dueAt) => {
    const schema = newSchema()
    const writer = await LogWriter.create(await openSession({ client: pglite, schema }), 'a')
    for (let i = 0; i < 5; i++) await writer.append()
    await writer.append({ trimPoint: 5, trimmedAt: NOW })
    let statements = 0
    const client = intercepting((text, run) => {
      if (!text.includes('due_at')) return undefined
      // Stops a reclaim that does not end.
      if (statements++ > 20) return Promise.reject(sqlError('57014'))
      const trim = isTrimming && { trimPoint: 5 + statements, trimmedAt: NOW + statements }
      return writer.append({ ...trim }).then(run)
    })
    const session = await openSession({ client, schema })
    expect(await session.reclaim({ now: 0, trimmedBefore: NOW, blocksMax: 100 })).toEqual({
      more: false,
      logIds: ['a'],
    })
    expect((await writer.records())[0]).toBe(5)
    const { rows } = await pglite.query(`SELECT due_at FROM ${schema}.logs`)
    expect(rows).toEqual([{ due_at: dueAt }])
  })

  test('does not forget what expires behind blocks that another process has freed meanwhile', async () => {
    const schema = newSchema()
    const other = await openSession({ client: pglite, schema })
    const writer = await LogWriter.create(other, 'a')
    for (const expiresAt of [NOW, null, NOW + 5]) await writer.append({ count: 1, expiresAt })
    let isOvertaken = false
    const client = intercepting((text, run) => {
      if (!text.startsWith('WITH log AS') || isOvertaken) return undefined
      isOvertaken = true
      const trimmed = writer.append({ count: 1, trimPoint: 2, trimmedAt: NOW })
      return trimmed.then(() => reclaimAll(other, { now: NOW, trimmedBefore: NOW })).then(run)
    })
    const session = await openSession({ client, schema })
    await session.reclaim({ now: NOW, trimmedBefore: NOW, blocksMax: 100 })
    expect(await writer.records()).toEqual([2, 3])
    await reclaimAll(other, { now: NOW + 5 })
    expect(await writer.records()).toEqual([3])
    await writer.measured()
  })

  test('forgets the ids of commits that are older than an hour', async () => {
    const schema = newSchema()
    const session = await openSession({ client: pglite, schema })
    for (const value of [1, 2]) {
      await session.commit([{ kind: 'put', collection: 'settings', key: 'a', value }])
      if (value === 1)
        await pglite.query(`UPDATE ${schema}.commits SET committed_at = committed_at - 3700000`)
    }
    await session.reclaim({ now: 0, trimmedBefore: 0, blocksMax: 100 })
    expect((await pglite.query(`SELECT 1 FROM ${schema}.commits`)).rows).toHaveLength(1)
  })

  const time = fc.nat({ max: 20 }).map((ms) => NOW + ms)
  const round = fc.record({
    expiries: fc.array(fc.option(time), { maxLength: 4 }),
    extension: fc.option(time),
    trim: fc.constantFrom(null, 0.5, 1),
    runs: fc.array(fc.record({ now: time, blocksMax: fc.constantFrom(1, 2, 100) }), { maxLength: 3 }),
  })

  test('by several processes, during appends and changes, frees all that is due, and nothing else', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(round, { minLength: 1, maxLength: 5 }), async (rounds) => {
        const options = { client: intercepting(() => undefined), schema: newSchema() }
        const session = await openSession(options)
        const writer = await LogWriter.create(session, 'a')
        for (const { expiries, extension, trim, runs } of rounds) {
          const others = runs.map((limits) => session.reclaim({ ...limits, trimmedBefore: NOW }))
          for (const expiresAt of expiries) await writer.append({ expiresAt })
          const below = writer.head.tail.seqNum
          if (extension !== null) await writer.reconfigure([{ below, after: 0, until: extension + 10 }])
          if (trim !== null) await writer.append({ trimPoint: Math.floor(trim * below), trimmedAt: NOW })
          await Promise.all(others)
          await writer.measured()
          const limits = { now: NOW + 10, trimmedBefore: NOW, blocksMax: 100 }
          await reclaimAll(session, limits)
          const [first] = await session.read('a', WHOLE_LOG)
          expect(first !== undefined && isReclaimable(reclaimTimes(first, writer.head), limits)).toBe(false)
          await writer.measured()
        }
        const { seqNum } = writer.head.tail
        await writer.append({ count: 1, trimPoint: seqNum, trimmedAt: NOW })
        await reclaimAll(session, { now: NOW + 1_000, trimmedBefore: NOW, blocksMax: 100 })
        const { rows } = await pglite.query(`SELECT due_at, expires_at FROM ${options.schema}.logs`)
        expect(rows).toEqual([{ due_at: null, expires_at: null }])
        expect(await session.read('a', WHOLE_LOG)).toHaveLength(1)
      }),
      { numRuns: 10 },
    )
  })
})

test('a session that is closed repeats the calls in flight at once, for the last time', async () => {
  let calls = 0
  const client = intercepting((text) => {
    if (!text.includes('known_id') && !isAppend(text)) return undefined
    calls++
    return Promise.reject(new Error('Connection terminated unexpectedly'))
  })
  // The time for another attempt never comes.
  const clock = { now: () => 0, schedule: () => () => {}, isVirtual: true }
  const session = await postgres({ client, schema: newSchema() }).open({ ...CONTEXT, clock })
  const writer = await LogWriter.create(session, 'a')
  const outcomes = [session.head('a'), writer.append()].map((call) => call.catch((error: unknown) => error))
  await vi.waitFor(() => expect(calls).toBe(2))
  await session.close()
  expect(await Promise.all(outcomes)).toMatchObject([
    { kind: 'io', nothingWritten: false },
    { kind: 'io', nothingWritten: false },
  ])
  expect(calls).toBe(4)
})

describe('other engines', () => {
  test('a follower sees their appends', async () => {
    const options = { client: pglite, schema: newSchema() }
    const [first, second] = [
      await open({ storage: postgres(options) }),
      await open({ storage: postgres(options) }),
    ]
    const stream = first.basin('basin').stream('a')
    await stream.append('before')
    const bodies: string[] = []
    const following = follow(stream, 3, bodies)
    await vi.waitFor(() => expect(bodies).toEqual(['before']))
    await second.basin('basin').stream('a').append(['x', 'y'])
    await following
    expect(bodies).toEqual(['before', 'x', 'y'])
    await first.close()
    await second.close()
  })

  test('a follower polls where LISTEN is switched off', async () => {
    // Only an object with `listen` or a pool can listen.
    const client = intercepting(() => undefined)
    const all = { client, listen: false, schema: newSchema() }
    const [first, second] = [await open({ storage: postgres(all) }), await open({ storage: postgres(all) })]
    const stream = first.basin('basin').stream('a')
    await stream.append('before')
    const bodies: string[] = []
    const following = follow(stream, 2, bodies)
    await vi.waitFor(() => expect(bodies).toEqual(['before']))
    await second.basin('basin').stream('a').append('x')
    await following
    expect(bodies).toEqual(['before', 'x'])
    await first.close()
    await second.close()
  })

  test('engines that do the background work at once free each record once, and delete a stream once', async () => {
    const schema = newSchema()
    const clock = virtualClock({ now: NOW })
    const onBackgroundError = vi.fn()
    const engines = await Promise.all(
      Array.from({ length: 3 }, () =>
        open({ storage: postgres({ client: pglite, schema }), clock, onBackgroundError }),
      ),
    )
    const basin = engines[0]!.basin('basin')
    await engines[0]!.ensureBasin('basin')
    await basin.createStream('short', { retentionPolicy: { ageSeconds: 60 } })
    await basin.createStream('empty', { deleteOnEmpty: { minAgeSeconds: 60 } })
    await basin.stream('short').append(['a', 'b'])
    const rows = () => pglite.query(`SELECT 1 FROM ${schema}.blocks`).then(({ rows }) => rows.length)
    expect(await rows()).toBe(1)
    await clock.advance(3_600_000)
    await vi.waitFor(async () => expect(await rows()).toBe(0))
    await vi.waitFor(async () => expect(await basin.stream('empty').exists()).toBe(false))
    expect(onBackgroundError).not.toHaveBeenCalled()
    for (const engine of engines) await engine.close()
  })
})

test('appends and reads continue with what a failover that lost commits has left', async () => {
  const client = pglite
  const schema = newSchema()
  const hw = await open({ storage: postgres({ client, schema }) })
  const stream = hw.basin('basin').stream('a')
  await stream.append('kept')
  const { rows } = await client.query<Record<string, unknown>>(`SELECT * FROM ${schema}.logs`)
  await stream.append('lost 1')
  await stream.append('lost 2')
  const behind = await open({ storage: postgres({ client, schema }) })
  expect(await behind.basin('basin').stream('a').checkTail()).toMatchObject({ seqNum: 3 })
  const { seq_num, append_id, state } = rows[0]!
  await client.query(`DELETE FROM ${schema}.blocks WHERE end_seq_num > $1`, [seq_num])
  await client.query(`UPDATE ${schema}.logs SET seq_num = $1, append_id = $2, state = $3`, [
    seq_num,
    append_id,
    state,
  ])
  expect(await stream.checkTail()).toMatchObject({ seqNum: 1 })
  expect((await stream.append('new')).start.seqNum).toBe(1)
  expect((await stream.readBatch({ seqNum: 0 })).records.map(({ body }) => body)).toEqual(['kept', 'new'])
  const other = await open({ storage: postgres({ client, schema }) })
  const read = await other.basin('basin').stream('a').readBatch({ seqNum: 0 })
  expect(read.records.map(({ body }) => body)).toEqual(['kept', 'new'])
  // The process that did not check the tail learns of it by the conflict.
  expect((await behind.basin('basin').stream('a').append('newer')).start.seqNum).toBe(2)
  for (const engine of [hw, behind, other]) await engine.close()
})
