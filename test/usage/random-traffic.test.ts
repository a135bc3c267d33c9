import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { shareOfRuns } from '../support/property-runs.ts'
import { advanceTo, append, createBasin, createStream, DAY, ofBasin, openUsage, upkeep } from './support.ts'

const BASINS = ['basin-one', 'basin-two']
const SIMULATED_SECONDS = 500 * DAY

/** Bursts of usage, minutes to weeks apart. */
const traffic = fc.array(
  fc.record({
    gapSeconds: fc.oneof(fc.nat(600), fc.nat(20_000), fc.integer({ min: 0, max: 20 * DAY })),
    basin: fc.constantFrom(...BASINS),
    bytes: fc.integer({ min: 1, max: 1_000 }),
    restart: fc.integer({ min: 0, max: 9 }).map((chance) => chance === 0),
    runUpkeep: fc.boolean(),
  }),
  { minLength: 40, maxLength: 80 },
)

describe('usage of random traffic over 500 days', { tags: ['slow'] }, () => {
  it('adds up to the traffic of each day', async () => {
    await fc.assert(
      fc.asyncProperty(traffic, async (bursts) => {
        let test = await openUsage()
        for (const basin of BASINS) {
          await createBasin(test, basin)
          await createStream(test, { basin, stream: `${basin}-stream` })
        }
        const totals: Record<string, Map<number, number>> = {}
        for (const basin of BASINS) totals[basin] = new Map()
        let now = 0
        for (const { gapSeconds, basin, bytes, restart, runUpkeep } of bursts) {
          now = Math.min(now + gapSeconds, SIMULATED_SECONDS)
          await advanceTo(test, now)
          if (restart) {
            await test.usage.close()
            test = await openUsage(test)
          }
          await append(test, { basin, stream: `${basin}-stream` }, bytes)
          const day = Math.floor(now / DAY)
          totals[basin]!.set(day, (totals[basin]!.get(day) ?? 0) + bytes)
          if (runUpkeep) await upkeep(test)
        }
        await advanceTo(test, now + 300)
        await upkeep(test)
        const from = Math.max(0, Math.floor(now / DAY) - 400) * DAY
        for (const basin of BASINS) {
          const reported = new Set<string>()
          for (let start = from; start <= now; start += 30 * DAY) {
            const range = [start, Math.min(start + 30 * DAY, now + 300)] as const
            const { standard } = await ofBasin(test, basin, 'append-throughput', range, 'day')
            for (const point of standard!.split(' ')) if (point !== '') reported.add(point)
          }
          const days = [...totals[basin]!].filter(([day]) => day * DAY >= from)
          const expected = days.map(([day, total]) => `${day === 0 ? 0 : `${day}d`}:${total}`)
          expect([...reported]).toEqual(expected)
        }
        await test.usage.close()
        expect(test.clock.pending).toBe(0)
      }),
      // Each run simulates months.
      shareOfRuns(1 / 8),
    )
  })
})
