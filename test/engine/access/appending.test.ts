import { beforeEach, describe, expect, it } from 'vitest'
import { type Engine, fenceRecord, trimRecord } from '../../../src/index.ts'
import type { AccessScopeInput } from '../../../src/model/access.ts'
import { readAll, testStorage, wrapped } from '../../support/index.ts'
import { type AccessEngine, EVERYTHING, openWithTokens, outcome } from './support.ts'

let engine: AccessEngine
let hw: Engine
beforeEach(async () => {
  engine = await openWithTokens()
  hw = engine.hw
})

const { opGroups: _, ...RESOURCES } = EVERYTHING
const withOps = (...ops: NonNullable<AccessScopeInput['ops']>): AccessScopeInput => ({ ...RESOURCES, ops })
const streamOf = (view: Engine, name = 'stream') => view.basin('basin').stream(name)
const tail = async () => (await streamOf(hw).checkTail()).seqNum

describe('appends with a token', () => {
  it('are stored in the order of the calls, awaited or not', async () => {
    // Looking the token up takes longer for some than for others.
    let calls = 0
    const storage = wrapped(testStorage(), {}, (session) => ({
      get: async (collection, key) => {
        const document = await session.get(collection, key)
        for (let turns = collection === 'tokens' ? 40 - calls++ : 0; turns > 0; turns--)
          await Promise.resolve()
        return document
      },
    }))
    const slow = await openWithTokens({ storage })
    const stream = streamOf(await slow.issued())
    const all = Array.from({ length: 40 }, (_, index) => `${index}`)
    const seqNums = await Promise.all(all.map(async (body) => (await stream.append(body)).start.seqNum))
    expect(seqNums).toEqual(all.map(Number))
    expect(await readAll(streamOf(slow.hw))).toEqual(all)
    await slow.hw.close()
  })

  it('continue after a rejected one', async () => {
    const stream = streamOf(await engine.issued({ scope: withOps('append') }))
    const outcomes = ['a', fenceRecord('f'), 'b', trimRecord(1), 'c'].map((record) =>
      outcome(stream.append(record)),
    )
    expect(await Promise.all(outcomes)).toEqual(['ok', 'permission_denied', 'ok', 'permission_denied', 'ok'])
    expect(await readAll(streamOf(hw))).toEqual(['a', 'b', 'c'])
  })
})

/** The access table has all operations for single records. */
it.each<[NonNullable<AccessScopeInput['ops']>, expected: string]>([
  [['append'], 'permission_denied'],
  [['append', 'fence'], 'permission_denied'],
  [['append', 'trim'], 'permission_denied'],
  [['fence', 'trim'], 'permission_denied'],
  [['append', 'fence', 'trim'], 'ok'],
])(
  'a batch with commands needs the permissions of all of them, in sessions too: %j is %s',
  async (ops, expected) => {
    const stream = streamOf(await engine.issued({ scope: withOps(...ops) }))
    const batch = ['x', fenceRecord(''), trimRecord(0)]
    const submit = async () => {
      await using session = await stream.appendSession()
      await (await session.submit(batch)).ack()
    }
    expect([await outcome(stream.append(batch)), await outcome(submit())]).toEqual([expected, expected])
    expect(await tail()).toBe(expected === 'ok' ? 6 : 0)
  },
)

describe('creation on first use', () => {
  const CREATIONS = ['create-basin', 'create-stream'] as const

  it('is off by default with a token', async () => {
    const view = await engine.issued()
    expect(await outcome(streamOf(view, 'new').append('a'))).toBe('stream_not_found')
    expect(await outcome(view.basin('new').stream('s').append('a'))).toBe('basin_not_found')
    expect(await outcome(view.onConnection({}).basin('new').stream('s').append('a'))).toBe('basin_not_found')
  })

  it.each<[AccessScopeInput['ops'], string]>([
    [['append', 'read', 'check-tail', ...CREATIONS], 'ok'],
    [['append', 'read', 'check-tail', 'create-basin'], 'permission_denied'],
    [['append', 'read', 'check-tail', 'create-stream'], 'permission_denied'],
    [['append', 'read', 'check-tail', 'reconfigure-stream', 'reconfigure-basin'], 'permission_denied'],
  ])('requires the permission to create if the caller enables it: %j is %s', async (ops, expected) => {
    const view = await engine.issued({ scope: { ...RESOURCES, ops } })
    const use = (name: string) => view.basin('new', { autoCreate: true }).stream(name)
    expect(await outcome(use('a').append('x'))).toBe(expected)
    const cursor = use('b').openCursor({}, { create: true })
    expect(await outcome(cursor)).toBe(expected)
    if (expected === 'ok') (await cursor)!.close()
    expect(
      await outcome(
        use('d')
          .appendSession()
          .then((session) => session.close()),
      ),
    ).toBe(expected)
    const basins = (await hw.listBasins()).items.map(({ name }) => name)
    expect(basins).toEqual(expected === 'ok' ? ['basin', 'new'] : ['basin'])
  })

  it('needs only the permission to append or read if the basin enables it', async () => {
    await hw.basin('basin').reconfigure({ createStreamOnAppend: true, createStreamOnRead: true })
    const scope = { ...withOps('append', 'check-tail'), streams: { prefix: 'logs/' } }
    const view = await engine.issued({ scope })
    expect(await outcome(streamOf(view, 'logs/a').append('x'))).toBe('ok')
    expect(await outcome(streamOf(view, 'logs/b').checkTail())).toBe('ok')
    expect(await outcome(streamOf(view, 'logs/c').readBatch({ tailOffset: 0 }))).toBe('permission_denied')
    expect(await outcome(streamOf(view, 'audit/a').append('x'))).toBe('permission_denied')
    const names = (await hw.basin('basin').listStreams()).items.map(({ name }) => name)
    expect(names).toEqual(['logs/a', 'logs/b', 'stream'])
  })
})
