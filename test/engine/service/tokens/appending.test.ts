import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Engine, fenceRecord, trimRecord } from '../../../../src/index.ts'
import type { AccessScopeInput } from '../../../../src/model/access.ts'
import { readAll, testStorage, wrapped } from '../../../support/index.ts'
import { type AccessEngine, EVERYTHING, openWithTokens, outcome } from './support.ts'

let engine: AccessEngine
let hw: Engine
beforeEach(async () => {
  engine = await openWithTokens()
  hw = engine.hw
})
afterEach(() => hw.close())

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

  it('in flight when the token is revoked are stored whole or rejected', async () => {
    const stream = streamOf(await engine.issued())
    const appends = ['a', 'b', 'c'].map((body) => outcome(stream.append(body)))
    await hw.revokeAccessToken('token')
    const outcomes = await Promise.all(appends)
    expect(outcomes.filter((outcome) => outcome === 'ok')).toHaveLength(await tail())
    expect(await outcome(stream.append('d'))).toBe('authn')
  })
})

describe('commands need their own permissions', () => {
  type Ops = NonNullable<AccessScopeInput['ops']>
  const none = 'permission_denied'
  it.each<[Ops, plain: string, fence: string, trim: string, both: string]>([
    [['append'], 'ok', none, none, none],
    [['append', 'fence'], 'ok', 'ok', none, none],
    [['append', 'trim'], 'ok', none, 'ok', none],
    [['append', 'fence', 'trim'], 'ok', 'ok', 'ok', 'ok'],
    [['fence', 'trim'], none, none, none, none],
    [['read', 'check-tail'], none, none, none, none],
  ])('%j: a plain record %s, a fence %s, a trim %s, both after a record %s', async (ops, ...expected) => {
    const stream = streamOf(await engine.issued({ scope: withOps(...ops) }))
    const batches = [['x'], [fenceRecord('')], [trimRecord(0)], ['x', fenceRecord(''), trimRecord(0)]]
    const unary: string[] = []
    const sessions: string[] = []
    for (const batch of batches) {
      unary.push(await outcome(stream.append(batch)))
      const submit = async () => {
        await using session = await stream.appendSession()
        await (await session.submit(batch)).ack()
      }
      sessions.push(await outcome(submit()))
    }
    expect(unary).toEqual(expected)
    expect(sessions).toEqual(expected)
    const stored = [1, 1, 1, 3].reduce((sum, count, index) => sum + (expected[index] === 'ok' ? count : 0), 0)
    expect(await tail()).toBe(2 * stored)
  })

  it('are checked against the stream with its prefix', async () => {
    const scope = { ...withOps('append', 'fence'), streams: { prefix: 'tenant/' } }
    const stream = streamOf(await engine.issued({ scope, autoPrefixStreams: true }), 'a')
    await hw.basin('basin').createStream('tenant/a')
    expect(await outcome(stream.fence('f'))).toBe('ok')
    expect(await outcome(stream.trim(0))).toBe('permission_denied')
  })
})

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

  it('uses the configuration of the basin, not of the caller', async () => {
    await hw.basin('basin').reconfigure({ createStreamOnAppend: true })
    const config = { retentionPolicy: 'infinite' } as const
    const use = async (name: string, id: string, scope: AccessScopeInput) => {
      const view = await engine.issued({ id, scope })
      await outcome(view.basin('basin').stream(name, { config }).append('x'))
      return hw
        .basin('basin')
        .stream(name)
        .config()
        .catch(() => undefined)
    }
    const byAppender = await use('a', 'appender', withOps('append'))
    expect(byAppender?.retentionPolicy).not.toBe('infinite')
    const byCreator = await use('b', 'creator', withOps('append', 'create-stream'))
    expect(byCreator?.retentionPolicy).toBe('infinite')
  })
})
