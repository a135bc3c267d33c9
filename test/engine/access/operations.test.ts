import { beforeEach, expect, it } from 'vitest'
import { type Engine, OPERATIONS, type Operation } from '../../../src/index.ts'
import type { AccessScopeInput } from '../../../src/model/access.ts'
import type { MetricsQuery } from '../../../src/model/metrics.ts'
import { type AccessEngine, failure, openWithTokens } from './support.ts'

/** The kind of the resource whose name a call has; none for calls about the account. */
type Resource = 'account' | 'basin' | 'stream' | 'token'

type Row = readonly [
  call: string,
  /** A token needs one of them. */
  needs: readonly Operation[],
  resource: Resource,
  call: (hw: Engine, kind: 'there' | 'gone') => Promise<unknown>,
]

const BASINS = { there: 'basin', gone: 'basin-gone' }
const STREAMS = { there: 'stream', gone: 'stream-gone' }
const IDS = { there: 'other', gone: 'other-gone' }
const FIRST_MINUTE = { start: 0, end: 60_000 }
const storage: MetricsQuery<'storage'> = { set: 'storage', ...FIRST_MINUTE }
const CHANGED = { storageClass: 'standard' } as const

const streamOf = (hw: Engine, kind: 'there' | 'gone') => hw.basin('basin').stream(STREAMS[kind])

/** Every method that needs a permission (docs/protocol.md "Permissions"). */
const ROWS: readonly Row[] = [
  ['list-basins', ['list-basins'], 'account', (hw) => hw.listBasins()],
  ['create-basin', ['create-basin'], 'basin', (hw, kind) => hw.createBasin(BASINS[kind])],
  ['delete-basin', ['delete-basin'], 'basin', (hw, kind) => hw.basin(BASINS[kind]).delete()],
  [
    'reconfigure-basin',
    ['reconfigure-basin'],
    'basin',
    (hw, kind) => hw.basin(BASINS[kind]).reconfigure({ createStreamOnRead: true }),
  ],
  ['get-basin-config', ['get-basin-config'], 'basin', (hw, kind) => hw.basin(BASINS[kind]).config()],
  [
    'issue-access-token',
    ['issue-access-token'],
    'token',
    (hw, kind) => hw.issueAccessToken({ id: IDS[kind], scope: { ops: ['issue-access-token'] } }),
  ],
  ['revoke-access-token', ['revoke-access-token'], 'token', (hw, kind) => hw.revokeAccessToken(IDS[kind])],
  ['list-access-tokens', ['list-access-tokens'], 'account', (hw) => hw.listAccessTokens()],
  ['list-streams', ['list-streams'], 'basin', (hw, kind) => hw.basin(BASINS[kind]).listStreams()],
  ['create-stream', ['create-stream'], 'stream', (hw, kind) => hw.basin('basin').createStream(STREAMS[kind])],
  ['delete-stream', ['delete-stream'], 'stream', (hw, kind) => streamOf(hw, kind).delete()],
  ['get-stream-config', ['get-stream-config'], 'stream', (hw, kind) => streamOf(hw, kind).config()],
  [
    'reconfigure-stream',
    ['reconfigure-stream'],
    'stream',
    (hw, kind) => streamOf(hw, kind).reconfigure(CHANGED),
  ],
  ['check-tail', ['check-tail'], 'stream', (hw, kind) => streamOf(hw, kind).checkTail()],
  ['append', ['append'], 'stream', (hw, kind) => streamOf(hw, kind).append('x')],
  ['read', ['read'], 'stream', (hw, kind) => streamOf(hw, kind).readBatch({ seqNum: 0 })],
  ['trim', ['trim'], 'stream', (hw, kind) => streamOf(hw, kind).trim(0)],
  ['fence', ['fence'], 'stream', (hw, kind) => streamOf(hw, kind).fence('mine')],
  [
    'account-metrics',
    ['account-metrics'],
    'account',
    (hw) => hw.metrics({ set: 'account-ops', ...FIRST_MINUTE }),
  ],
  ['basin-metrics', ['basin-metrics'], 'basin', (hw, kind) => hw.basin(BASINS[kind]).metrics(storage)],
  ['stream-metrics', ['stream-metrics'], 'stream', (hw, kind) => streamOf(hw, kind).metrics(storage)],
  ['list-locations', ['list-locations'], 'account', (hw) => hw.listLocations()],
  ['get-default-location', ['get-default-location'], 'account', (hw) => hw.defaultLocation()],
  [
    'set-default-location',
    ['set-default-location'],
    'account',
    (hw) => hw.setDefaultLocation('aws:us-east-1'),
  ],
  // What they do depends on what there is.
  ['ensure a new basin', ['create-basin'], 'basin', (hw) => hw.ensureBasin('basin-gone')],
  [
    'ensure a basin as it is',
    ['create-basin', 'reconfigure-basin'],
    'basin',
    (hw) => hw.ensureBasin('basin'),
  ],
  [
    'ensure another configuration of a basin',
    ['reconfigure-basin'],
    'basin',
    (hw) => hw.ensureBasin('basin', { createStreamOnAppend: true }),
  ],
  ['ensure a new stream', ['create-stream'], 'stream', (hw) => hw.basin('basin').ensureStream('stream-gone')],
  [
    'ensure a stream as it is',
    ['create-stream', 'reconfigure-stream'],
    'stream',
    (hw) => hw.basin('basin').ensureStream('stream'),
  ],
  [
    'ensure another configuration of a stream',
    ['reconfigure-stream'],
    'stream',
    (hw) => hw.basin('basin').ensureStream('stream', CHANGED),
  ],
]

const ALL = { prefix: '' }
const EVERY_RESOURCE = { basins: ALL, streams: ALL, accessTokens: ALL }
const ELSEWHERE = { exact: 'elsewhere' }

let engine: AccessEngine
beforeEach(async () => {
  engine = await openWithTokens()
  const { hw } = engine
  await hw.basin('basin').stream('stream').append('first')
  await hw.issueAccessToken({ id: 'other', scope: { ops: ['read'] } })
})

let tokens = 0

async function holderOf(scope: AccessScopeInput): Promise<Engine> {
  return engine.issued({ id: `holder-${tokens++}`, scope })
}

/** Everything that a call can change, without the tokens of the test. */
async function state(): Promise<unknown> {
  const { hw } = engine
  const { items: basins } = await hw.listBasins()
  const { items: issued } = await hw.listAccessTokens({ prefix: 'other' })
  const basin = hw.basin('basin')
  const stream = basin.stream('stream')
  const { items: streams } = await basin.listStreams()
  const configs = [await basin.config(), await stream.config()]
  return { basins, issued, streams, configs, tail: await stream.checkTail() }
}

it('the calls need each operation', () => {
  expect([...new Set(ROWS.flatMap(([, needs]) => needs))].sort()).toEqual([...OPERATIONS].sort())
})

it.each(ROWS)('%s needs one of %j, and no other permission', async (_, needs, __, call) => {
  const others = OPERATIONS.filter((operation) => !needs.includes(operation))
  const before = await state()
  const denied = await holderOf({ ...EVERY_RESOURCE, ops: others })
  expect(await failure(call(denied, 'there'))).toMatchObject({
    code: 'permission_denied',
    message: `the access token does not permit ${needs.join(' or ')}`,
  })
  expect(await state()).toEqual(before)
  for (const operation of needs) {
    // A command is a record of an append.
    const ops = ['trim', 'fence'].includes(operation) ? [operation, 'append' as const] : [operation]
    const permitted = await holderOf({ ...EVERY_RESOURCE, ops })
    expect((await failure(call(permitted, 'there')))?.code).not.toBe('permission_denied')
  }
})

const OUTSIDE: Readonly<Record<Exclude<Resource, 'account'>, readonly AccessScopeInput[]>> = {
  basin: [{ basins: ELSEWHERE }, {}],
  stream: [{ basins: ELSEWHERE, streams: ALL }, { basins: ALL, streams: ELSEWHERE }, { basins: ALL }],
  token: [{ accessTokens: { exact: 'elsewhere' } }, {}],
}

it.each(ROWS.filter(([, , resource]) => resource !== 'account'))(
  '%s is refused outside of the scope, whether the resource exists or not',
  async (_, needs, resource, call) => {
    const before = await state()
    for (const scope of OUTSIDE[resource as 'basin']) {
      const holder = await holderOf({ ...scope, ops: [...needs] })
      const refusals = [await failure(call(holder, 'there')), await failure(call(holder, 'gone'))]
      for (const refusal of refusals) expect(refusal?.code).toBe('permission_denied')
      expect(refusals[0]!.message).toBe(refusals[1]!.message)
    }
    expect(await state()).toEqual(before)
  },
)
