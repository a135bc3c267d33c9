// @module-tag slow

import { PGlite } from '@electric-sql/pglite'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { createHandler } from '../../../adapters/http/index.ts'
import { postgres } from '../../../adapters/storage/postgres/index.ts'
import { virtualClock } from '../../../adapters/testing/index.ts'
import { type Clock, type Engine, open, systemClock } from '../../../src/index.ts'
import { usageMetrics } from '../../../src/usage/index.ts'
import { newSchema } from './schemas.ts'

const HOUR = 3_600_000

let pglite: PGlite
beforeAll(async () => {
  pglite = await PGlite.create()
})
afterAll(() => pglite.close())

/** A clock of a machine that is ahead of the database by this. */
function clockAhead(byMs: number): Clock {
  return { ...systemClock, now: () => Date.now() + byMs }
}

async function opened(schema: string, clock: Clock) {
  const hw = await open({
    storage: postgres({ client: pglite, schema }),
    clock,
    usage: usageMetrics(),
    trimGraceMs: 0,
  })
  onTestFinished(() => hw.close())
  return { hw, stream: hw.basin('basin').stream('stream') }
}

async function blocksOf(schema: string): Promise<number> {
  const { rows } = await pglite.query<{ count: number }>(
    `SELECT count(*)::int AS count FROM ${schema}.blocks`,
  )
  return rows[0]!.count
}

function page(hw: Engine, path: string): Promise<string> {
  return createHandler(hw, { auth: 'none' })(new Request(`http://localhost${path}`)).then((reply) =>
    reply.text(),
  )
}

describe('a process whose clock is two hours ahead', () => {
  test('neither deletes nor hides what others wrote, and stamps by the clock of the database', async () => {
    const schema = newSchema()
    const right = await opened(schema, systemClock)
    await right.hw.createBasin('basin', { defaultStreamConfig: { retentionPolicy: { ageSeconds: 3_600 } } })
    await right.stream.append('minutes old')
    await right.hw.close()
    const fast = await opened(schema, clockAhead(2 * HOUR))
    // A trim is freed after the records that have expired.
    const other = fast.hw.basin('basin').stream('other')
    await other.append('x')
    await other.trim(1)
    await vi.waitUntil(async () => (await blocksOf(schema)) <= 2)
    expect((await fast.stream.readBatch({ seqNum: 0 })).records.map(({ body }) => body)).toEqual([
      'minutes old',
    ])
    const before = Date.now()
    const { end } = await fast.stream.append('x')
    expect(Math.abs(end.timestamp - before)).toBeLessThan(HOUR)
    const { rows } = await pglite.query<{ expires: string }>(
      `SELECT expires_at AS expires FROM ${schema}.blocks WHERE expires_at IS NOT NULL`,
    )
    for (const { expires } of rows) expect(Math.abs(Number(expires) - before - HOUR)).toBeLessThan(HOUR)
  })

  test('reports the offset', async () => {
    const { hw } = await opened(newSchema(), clockAhead(2 * HOUR))
    const { clockOffsetMs } = hw.stats()
    expect(Math.round(clockOffsetMs / HOUR)).toBe(-2)
    expect(Math.abs(hw.now() - Date.now())).toBeLessThan(HOUR)
    expect(await page(hw, '/health')).toMatch(/^OK\nclock offset: -7\d{6} ms$/)
    expect(await page(hw, '/metrics')).toMatch(/\nheadwater_clock_offset_seconds -7\d{3}(\.\d+)?\n/)
  })

  test('measures again while it runs', async () => {
    let aheadMs = 0
    const clock: Clock = { ...systemClock, now: () => Date.now() + aheadMs }
    const storage = postgres({ client: pglite, schema: newSchema() })
    const session = await storage.open({ clock, onLogChanged() {} })
    onTestFinished(() => session.close())
    expect(session.clockOffsetMs!()).toBe(0)
    aheadMs = -HOUR
    await session.now!()
    expect(Math.round(session.clockOffsetMs!() / HOUR)).toBe(1)
  })
})

test('a virtual clock is not corrected', async () => {
  const clock = virtualClock({ now: 1_000_000 })
  const { hw, stream } = await opened(newSchema(), clock)
  expect((await stream.append('x')).end.timestamp).toBe(1_000_000)
  expect([hw.now(), hw.stats().clockOffsetMs]).toEqual([1_000_000, 0])
})
