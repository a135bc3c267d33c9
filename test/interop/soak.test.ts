import { describe, expect, it } from 'vitest'
import { all, bodies } from './records.ts'
import { soak } from './soak.ts'
import { basinOn, openCounts, startService, TRANSPORTS, untilIdle } from './support.ts'

// The whole of it: SOAK_SECONDS=60 npx vitest run test/interop/soak.test.ts
const seconds = Number(process.env.SOAK_SECONDS ?? 4)

it('delivers every record of 100 appenders to 100 followers once and in order', {
  timeout: seconds * 3_000 + 60_000,
}, async () => {
  const service = await startService()
  const result = await soak(service, { seconds, appenders: 100, followers: 100 })
  expect(result.records).toBeGreaterThanOrEqual(100)
  expect(result.deliveries).toBe(result.records * 100)
  await untilIdle(service)
  expect(openCounts(service)).toEqual({
    openSessions: 0,
    openReads: 0,
    waitingReads: 0,
    pendingAppends: 0,
    appendBytesInFlight: 0,
    waitingAppends: 0,
    waitingAppendBytes: 0,
    requests: 0,
  })
  await service.close()
  expect(service.server.counts()).toEqual({ connections: 0, http2Sessions: 0, requests: 0 })
  expect(service.errors).toEqual([])
  if (process.env.SOAK_SECONDS !== undefined) console.log(`${seconds} s:`, result)
})

describe.concurrent.each(TRANSPORTS)('a follower by $name', (transport) => {
  // Without heartbeats, which come up to 15 s apart, the client gives up after 20 s or 25 s.
  it('is kept alive while nothing happens', { timeout: seconds * 2_000 + 30_000 }, async () => {
    const service = await startService()
    const basin = await basinOn(service.server.url, transport, { retry: { maxAttempts: 1 } })
    const stream = await basin.stream('last')
    const stop = { waitSecs: Math.ceil(seconds / 2) }
    const session = await stream.readSession({ start: { from: { seqNum: 0 } }, stop })
    expect(bodies(await all(session))).toEqual(['last'])
    await basin.close()
    await untilIdle(service)
    await service.close()
  })
})
