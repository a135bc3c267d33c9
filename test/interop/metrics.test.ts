import { describe, expect, it } from 'vitest'
import { testClock } from '../support/index.ts'
import { strings } from './records.ts'
import { clientOf, freshName, serviceOfFile } from './support.ts'

/** The beginning of an hour, so that no test crosses an hour unnoticed. */
const START = Date.UTC(2024, 0, 2, 3)
const clock = testClock({ now: START })
/** One entry for each minute with appends of a connection to a stream, which is an append operation. */
const appendOperations = new Set<string>()
const connections = new Map<object, number>()
let sessionConnection: object | undefined
const service = await serviceOfFile({
  clock,
  onRequest(exchange) {
    const { method, path, connection } = exchange
    const [, stream] = /streams\/([^/]*)\/records$/.exec(path) ?? []
    if (method !== 'POST' || stream === undefined) return
    countAppends(stream, connection!)
    if (exchange.header('content-type') === 's2s/proto') sessionConnection = connection
  },
})
const { url } = service.server
const s2 = clientOf(url)
const HOUR = { start: new Date(START), end: new Date(START + 3_600_000 / 12) }

function countAppends(stream: string, connection: object): void {
  const known = connections.get(connection) ?? connections.size
  connections.set(connection, known)
  appendOperations.add(`${stream} ${known} ${minutesOf(new Date(clock.now()))}`)
}

const operationsOf = (streams: string, minute: number) =>
  [...appendOperations].filter(
    (line) => streams.split(' ').includes(line.split(' ')[0]!) && line.endsWith(` ${minute}`),
  ).length

const meteredBytes = (bodies: readonly string[]) => bodies.reduce((sum, { length }) => sum + 8 + length, 0)

type MetricSetResponse = Awaited<ReturnType<typeof s2.metrics.basin>>
type BasinSet = Parameters<typeof s2.metrics.basin>[0]['set']

/** Accumulations by name: their intervals, and their points in minutes since the start. */
function accumulations({ values }: MetricSetResponse) {
  return Object.fromEntries(
    values.map((metric) => {
      if (!('accumulation' in metric)) throw new Error('no accumulation')
      const { name, interval, unit, values } = metric.accumulation
      return [name, { interval, unit, points: values.map(([at, value]) => [minutesOf(at), value]) }]
    }),
  )
}

function gauge({ values }: MetricSetResponse) {
  const [metric] = values
  if (metric === undefined || !('gauge' in metric)) throw new Error('no gauge')
  const { name, unit, values: points } = metric.gauge
  return { name, unit, points: points.map(([at, value]) => [minutesOf(at), value]) }
}

const minutesOf = (at: Date) => (at.getTime() - START) / 60_000

describe('metrics of the published client equal the counts of the test', () => {
  it('appends by stream, connection and minute; bytes; reads; storage; operations', async () => {
    const basin = freshName('basin')
    await s2.basins.create({ basin, config: { defaultStreamConfig: { storageClass: 'standard' } } })
    const handle = s2.basin(basin)
    const bodies = ['one', 'two and', 'three']
    for (const stream of ['a', 'b']) await handle.streams.create({ stream })
    await handle.streams.create({ stream: 'fast', config: { storageClass: 'express' } })

    // Minute 0: by HTTP/1.1 to three streams, to one of them twice, and to one of them by HTTP/2 as well.
    const [a, b, fast] = ['a', 'b', 'fast'].map((stream) => handle.stream(stream))
    await a!.append(strings(...bodies))
    await a!.append(strings(...bodies))
    await b!.append(strings(...bodies))
    await fast!.append(strings(...bodies))
    const session = await handle.stream('a', { forceTransport: 's2s' }).appendSession()
    for (let i = 0; i < 3; i++) await (await session.submit(strings(...bodies))).ack()
    await clock.advance('60s')
    // Minute 1: once more by each protocol.
    countAppends('a', sessionConnection!)
    await (await session.submit(strings(...bodies))).ack()
    await session.close()
    await b!.append(strings(...bodies))

    const bytes = meteredBytes(bodies)
    const metrics = (set: BasinSet, more = {}) => s2.metrics.basin({ basin, set, ...HOUR, ...more })
    expect(accumulations(await metrics('append-ops'))).toEqual({
      standard: {
        interval: 'minute',
        unit: 'operations',
        points: [
          [0, operationsOf('a b', 0)],
          [1, operationsOf('a b', 1)],
        ],
      },
      express: { interval: 'minute', unit: 'operations', points: [[0, operationsOf('fast', 0)]] },
    })
    // By at least two connections to one of the streams.
    expect(operationsOf('a b', 0)).toBeGreaterThanOrEqual(3)
    expect(operationsOf('a b', 0)).toBeLessThan(9)
    expect(accumulations(await metrics('append-throughput'))).toEqual({
      standard: {
        interval: 'minute',
        unit: 'bytes',
        points: [
          [0, 6 * bytes],
          [1, 2 * bytes],
        ],
      },
      express: { interval: 'minute', unit: 'bytes', points: [[0, bytes]] },
    })

    // Minute 2: two reads of everything, one without a result, and a session that stays open for two and a
    // half minutes.
    await clock.advance('60s')
    await b!.read({ start: { from: { seqNum: 0 } } })
    await b!.read({ start: { from: { seqNum: 0 } }, stop: { limits: { count: 2 } } })
    await b!.read({ start: { from: { seqNum: 99 } } }).catch(() => {})
    const stream = handle.stream('a', { forceTransport: 's2s' })
    const reading = await stream.readSession({ start: { from: { seqNum: 0 } }, stop: { waitSecs: 600 } })
    const values: unknown[] = []
    const following = (async () => {
      for await (const record of reading) if (values.push(record) === 19) return
    })()
    await expect.poll(() => values.length).toBe(18)
    await clock.advance('150s')
    await a!.append(strings('x'))
    await following
    await stream.close()
    await expect.poll(() => service.hw.stats().openReads).toBe(0)

    const readOps = accumulations(await metrics('read-ops'))
    expect(readOps).toMatchObject({
      unary: { interval: 'minute', points: [[2, 2]] },
      streaming: {
        interval: 'minute',
        points: [
          [2, 1],
          [3, 1],
          [4, 1],
        ],
      },
    })
    const read = 2 * bytes + meteredBytes(['one', 'two and'])
    expect(accumulations(await metrics('read-throughput', { interval: 'hour' }))).toEqual({
      read_bytes: {
        interval: 'hour',
        unit: 'bytes',
        points: [[0, read + 6 * bytes + meteredBytes(['x'])]],
      },
    })
    const held = 9 * bytes + meteredBytes(['x'])
    expect(gauge(await metrics('storage'))).toEqual({
      name: 'metered_size',
      unit: 'bytes',
      points: [[0, held]],
    })
    expect(gauge(await s2.metrics.stream({ basin, stream: 'b', set: 'storage', ...HOUR }))).toEqual({
      name: 'metered_size',
      unit: 'bytes',
      points: [
        [0, bytes],
        [1, 2 * bytes],
        [2, 2 * bytes],
        [3, 2 * bytes],
        [4, 2 * bytes],
      ],
    })

    await handle.streams.list()
    await handle.streams.list()
    await b!.checkTail()
    const operations = accumulations(await metrics('basin-ops'))
    expect(Object.keys(operations).sort()).toEqual([
      'basin-metrics',
      'check-tail',
      'create-stream',
      'list-streams',
      'stream-metrics',
    ])
    const counts = Object.fromEntries(Object.entries(operations).map(([name, { points }]) => [name, points]))
    expect(counts).toEqual({
      'basin-metrics': [[0, 5]],
      'check-tail': [[0, 1]],
      'create-stream': [[0, 3]],
      'list-streams': [[0, 2]],
      'stream-metrics': [[0, 1]],
    })
    expect(operations['create-stream']!.interval).toBe('hour')
  })

  it('of the account: operations, and the basins that had a stream', async () => {
    const before = accumulations(await s2.metrics.account({ set: 'account-ops', ...HOUR }))
    const [empty, used] = [freshName('basin'), freshName('basin')]
    for (const basin of [empty, used]) await s2.basins.create({ basin })
    await s2.basin(used).streams.create({ stream: 's' })
    await s2.basins.getConfig({ basin: used })
    await s2.basins.list()
    const after = accumulations(await s2.metrics.account({ set: 'account-ops', ...HOUR }))
    const grown = (name: string) => (after[name]?.points[0]?.[1] ?? 0) - (before[name]?.points[0]?.[1] ?? 0)
    expect(
      ['create-basin', 'get-basin-config', 'list-basins', 'account-metrics', 'delete-basin'].map(grown),
    ).toEqual([2, 1, 1, 1, 0])
    const { values } = await s2.metrics.account({ set: 'active-basins', ...HOUR })
    expect(values).toHaveLength(1)
    const [metric] = values
    const names = metric && 'label' in metric ? metric.label : undefined
    expect(names?.name).toBe('active_basins')
    expect(names?.values).toContain(used)
    expect(names?.values).not.toContain(empty)
  })

  it('of unknown names are empty', async () => {
    const query = { basin: 'no-such-basin', ...HOUR }
    expect(accumulations(await s2.metrics.basin({ ...query, set: 'append-ops' }))).toMatchObject({
      standard: { points: [] },
      express: { points: [] },
    })
    expect(gauge(await s2.metrics.stream({ ...query, stream: 's', set: 'storage' })).points).toEqual([])
  })
})
