import fc from 'fast-check'
import { beforeEach, describe, expect, it } from 'vitest'
import type { Basin, Engine } from '../../../src/index.ts'
import { bodies, readAll } from '../../support/index.ts'
import { type AccessEngine, EVERYTHING, failure, openWithTokens, outcome } from './support.ts'

let engine: AccessEngine
let hw: Engine
/** The basin for the holder of a token with the prefix `tenant/`. */
let mine: Basin
/** The same basin for its owner. */
let whole: Basin
beforeEach(async () => {
  engine = await openWithTokens()
  hw = engine.hw
  const prefixed = { autoPrefixStreams: true, scope: { ...EVERYTHING, streams: { prefix: 'tenant/' } } }
  mine = (await engine.issued(prefixed)).basin('basin')
  whole = hw.basin('basin', { autoCreate: false })
})

const names = async (basin: Basin, query = {}) =>
  (await basin.listStreams(query)).items.map(({ name }) => name)

describe('an automatic prefix', () => {
  it('is added to the name in every call', async () => {
    await whole.createStream('a')
    await whole.createStream('tenant/a')
    const stream = mine.stream('a')
    await stream.append('1')
    await stream.fence('f')
    await stream.trim(0, { fencingToken: 'f' })
    const session = await stream.appendSession()
    await session.submit('2')
    await session.close()
    for await (const _ of stream.appendAll(['3'])) {
      // Its ack.
    }
    const producer = stream.producer({ lingerMs: 0 })
    await producer.submit('4')
    await producer.close()
    expect((await stream.checkTail()).seqNum).toBe(6)
    expect((await whole.stream('a').checkTail()).seqNum).toBe(0)
    expect(await readAll(whole.stream('tenant/a'))).toEqual(await readAll(stream))
    expect(bodies(await stream.readBatch({ seqNum: 0, count: 1 }))).toEqual(['1'])
    const cursor = (await stream.openCursor({ seqNum: 5 }, {}))!
    const event = await cursor.next()
    expect(event?.kind === 'batch' && bodies(event.batch)).toEqual(['4'])
    cursor.close()
    expect(await outcome(stream.metrics({ set: 'storage', start: 0, end: 60_000 }))).toBe('ok')

    await mine.stream('a').reconfigure({ retentionPolicy: { ageSeconds: 60 } })
    expect((await mine.stream('a').config()).retentionPolicy).toEqual({ ageSeconds: 60 })
    expect((await whole.stream('tenant/a').config()).retentionPolicy).toEqual({ ageSeconds: 60 })
    expect((await whole.stream('a').config()).retentionPolicy).not.toEqual({ ageSeconds: 60 })
    await mine.stream('a').delete()
    expect(await names(whole)).toEqual(['a', 'stream'])
  })

  it('is hidden in errors', async () => {
    await mine.createStream('there')
    const message = async (call: Promise<unknown>) => (await failure(call))?.message
    expect(await message(mine.createStream('there'))).toBe('stream `there` in basin `basin` already exists')
    for (const [name, call] of Object.entries(CALLS)) {
      if (['create', 'ensure', 'metrics'].includes(name)) continue
      expect(await message(call('x'))).toMatch(
        /^stream `x` in basin `basin` not found($|; create it, or set )/,
      )
    }
  })

  it('is hidden in the errors of sessions whose stream is deleted', async () => {
    await mine.createStream('a')
    const cursor = (await mine.stream('a').openCursor({}, {}))!
    const session = await mine.stream('a').appendSession()
    const next = failure(Promise.resolve(cursor.next()))
    await whole.stream('tenant/a').delete()
    const errors = [await next, await failure(session.submit('x').then((ticket) => ticket.ack()))]
    for (const error of errors) expect(error?.message).not.toMatch(/tenant|^$/)
  })

  it('applies to no other token', async () => {
    await mine.createStream('a')
    const scope = { ...EVERYTHING, streams: { prefix: 'tenant/' } }
    const other = (await engine.issued({ id: 'other', scope })).basin('basin')
    expect(await names(other)).toEqual(['tenant/a'])
    expect(await outcome(other.stream('tenant/a').checkTail())).toBe('ok')
    expect(await outcome(other.stream('a').checkTail())).toBe('permission_denied')
  })
})

/** Every call on a stream by its name. */
const CALLS: Readonly<Record<string, (name: string) => Promise<unknown>>> = {
  create: (name) => mine.createStream(name),
  ensure: (name) => mine.ensureStream(name),
  config: (name) => mine.stream(name).config(),
  reconfigure: (name) => mine.stream(name).reconfigure({}),
  delete: (name) => mine.stream(name).delete(),
  append: (name) => mine.stream(name).append('a'),
  'append session': (name) => mine.stream(name).appendSession(),
  read: (name) => mine.stream(name).readBatch({ tailOffset: 0 }),
  'read session': (name) => mine.stream(name).openCursor({}, {}),
  tail: (name) => mine.stream(name).checkTail(),
  metrics: (name) => mine.stream(name).metrics({ set: 'storage', start: 0, end: 60_000 }),
}

describe('a name with its automatic prefix', () => {
  const longest = 'x'.repeat(512 - 'tenant/'.length)

  it('may have up to 512 bytes', async () => {
    expect(await outcome(mine.createStream(longest))).toBe('ok')
    expect(await names(mine, { prefix: longest })).toEqual([longest])
    expect(await names(mine, { startAfter: longest })).toEqual([])
  })

  it.each(Object.entries(CALLS))('is rejected beyond that, or if it is invalid: %s', async (_, call) => {
    for (const name of [`${longest}x`, `${longest.slice(1)}é`, 'x'.repeat(1_000)]) {
      const error = await failure(call(name))
      expect(error).toMatchObject({ code: 'invalid', field: 'stream' })
      // The error for a name that is too long without the prefix does not mention the prefix.
      expect(error?.message).toMatch(name.length > 512 ? /512 bytes/ : /512 bytes .* with the prefix/)
      expect(error?.message).not.toContain('tenant')
    }
    for (const name of ['', '.', '..', '\ud800']) {
      expect((await failure(call(name)))?.code).toBe('invalid')
    }
    expect(hw.stats().openReads).toBe(0)
  })

  it.each(['prefix', 'startAfter'])('is rejected beyond that in lists: %s', async (field) => {
    const error = await failure(mine.listStreams({ [field]: `${longest}x` }))
    expect([error?.code, error?.field]).toEqual(['invalid', field])
    expect(error?.message).toMatch(/512 bytes .* with the prefix/)
  })
})

describe('the holder of a token with a prefix', () => {
  const hostile = [
    '...',
    '../stream',
    '/',
    '//',
    '\u0001stream',
    '../../basin/stream',
    '%2e%2e',
    '\\..\\',
    'tenant/',
  ]

  it('cannot escape the prefix with any call', { tags: ['slow'] }, async () => {
    await whole.stream('stream').append('not yours')
    const anyName = fc
      .oneof(fc.string({ unit: 'binary', maxLength: 12 }), fc.constantFrom(...hostile, 'stream'))
      .filter((name) => !name.includes('\0'))
    await fc.assert(
      fc.asyncProperty(anyName, async (name) => {
        const stream = mine.stream(name)
        await outcome(mine.ensureStream(name))
        await outcome(stream.append('mine'))
        const read = await stream.readBatch({ seqNum: 0 }).catch(() => undefined)
        if (read !== undefined) expect(bodies(read)).not.toContain('not yours')
        for (const listed of await names(mine, { prefix: name })) expect(listed.startsWith(name)).toBe(true)
        await outcome(mine.stream(name).delete())
        expect(await names(whole)).toEqual(['stream'])
      }),
      { examples: hostile.map((name) => [name]) },
    )
    expect(await readAll(whole.stream('stream'))).toEqual(['not yours'])
  })
})

/** The storage has basin and stream in one key, with U+0000 between them. */
it.each(['a scope', 'a prefix'])(
  'a basin with a part of the name of a stream does not escape %s',
  async (kind) => {
    const foreign = hw.basin('basin').stream('yours/mine/a')
    await foreign.append('not yours')
    const scope = { ...EVERYTHING, basins: { prefix: 'bas' }, streams: { prefix: 'mine/' } }
    const view = await engine.issued({ id: 'other', scope, autoPrefixStreams: kind === 'a prefix' })
    const stream = view.basin('basin\0yours/').stream(kind === 'a prefix' ? 'a' : 'mine/a')
    const uses = [stream.append('x'), stream.appendSession(), stream.readBatch(), stream.checkTail()]
    for (const use of uses) expect(await outcome(use)).toMatch(/^(invalid|permission_denied)$/)
    expect((await foreign.checkTail()).seqNum).toBe(1)
  },
)
