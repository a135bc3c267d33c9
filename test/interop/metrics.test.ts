import { expect, it } from 'vitest'
import { testClock } from '../support/index.ts'
import { strings } from './records.ts'
import { clientOf, freshName, serviceOfFile } from './support.ts'

/** The beginning of an hour, so that no test crosses an hour unnoticed. */
const START = Date.UTC(2024, 0, 2, 3)
const clock = testClock({ now: START })
const service = await serviceOfFile({ clock })
const s2 = clientOf(service.server.url)
const HOUR = { start: new Date(START), end: new Date(START + 300_000) }

type MetricSetResponse = Awaited<ReturnType<typeof s2.metrics.basin>>
type BasinSet = Parameters<typeof s2.metrics.basin>[0]['set']

/** The points of each metric by its name, in minutes since the start. */
function pointsOf({ values }: MetricSetResponse) {
  return Object.fromEntries(
    values.map((metric) => {
      if (!('accumulation' in metric) && !('gauge' in metric)) throw new Error('another kind of metric')
      const { name, values } = 'accumulation' in metric ? metric.accumulation : metric.gauge
      return [name, values.map(([at, value]) => [(at.getTime() - START) / 60_000, value])]
    }),
  )
}

it('the published client gets the metrics of a basin, a stream and the account', async () => {
  const basin = freshName('basin')
  await s2.basins.create({ basin })
  const handle = s2.basin(basin)
  await handle.streams.create({ stream: 'a' })
  const stream = handle.stream('a')
  const bodies = ['one', 'two and', 'three']
  const bytes = bodies.reduce((sum, { length }) => sum + 8 + length, 0)
  await stream.append(strings(...bodies))
  await clock.advance('60s')
  await stream.append(strings(...bodies))
  await stream.read({ start: { from: { seqNum: 0 } } })
  await stream.close()

  const metrics = async (set: BasinSet, more = {}) =>
    pointsOf(await s2.metrics.basin({ basin, set, ...HOUR, ...more }))
  const express = [
    [0, 1],
    [1, 1],
  ]
  expect(await metrics('append-ops')).toEqual({ standard: [], express })
  expect(await metrics('append-throughput', { interval: 'hour' })).toMatchObject({
    express: [[0, 2 * bytes]],
  })
  expect(await metrics('read-ops')).toMatchObject({ unary: [[1, 1]], streaming: [] })
  expect(await metrics('storage')).toEqual({ metered_size: [[0, 2 * bytes]] })
  expect(await metrics('basin-ops')).toMatchObject({ 'create-stream': [[0, 1]], 'basin-metrics': [[0, 4]] })
  const ofStream = await s2.metrics.stream({ basin, stream: 'a', set: 'storage', ...HOUR })
  expect(pointsOf(ofStream)).toEqual({
    metered_size: [
      [0, bytes],
      [1, 2 * bytes],
    ],
  })
  expect(pointsOf(await s2.metrics.account({ set: 'account-ops', ...HOUR }))).toMatchObject({
    'create-basin': [[0, 1]],
  })
  const { values } = await s2.metrics.account({ set: 'active-basins', ...HOUR })
  expect(values).toMatchObject([{ label: { name: 'active_basins', values: [basin] } }])
})
