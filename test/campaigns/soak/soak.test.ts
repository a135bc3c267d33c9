// @module-tag nightly

import { describe, expect, it } from 'vitest'
import { all, bodies } from '../../interop/records.ts'
import { basinOn, openCounts, startService, TRANSPORTS, untilIdle } from '../../interop/support.ts'
import { campaignOf } from '../harness/campaign.ts'
import { soak } from './soak.ts'

const campaign = campaignOf('soak', { seconds: 2 })
const { seconds } = campaign.options

it('delivers every record of 100 appenders to 100 followers once and in order', {
  timeout: seconds * 10_000 + 300_000,
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
    readBufferBytes: 0,
    pendingAppends: 0,
    appendBytesInFlight: 0,
    waitingAppends: 0,
    waitingAppendBytes: 0,
    requests: 0,
  })
  await service.close()
  expect(service.server.counts()).toEqual({ connections: 0, http2Sessions: 0, requests: 0 })
  expect(service.errors).toEqual([])
  if (campaign.runsAll) console.log(`${seconds} s:`, result)
})

describe.concurrent.each(TRANSPORTS)('a follower on $name', (transport) => {
  // The client gives up after 20 to 25 s without a heartbeat; heartbeats are at most 15 s apart.
  it('stays connected while nothing is appended', { timeout: seconds * 10_000 + 300_000 }, async () => {
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
