import { AppendInput, AppendRecord } from '@s2-dev/streamstore'
import { afterEach, describe, expect, it } from 'vitest'
import type { Clock } from '../../src/index.ts'
import { testClock, testStorage } from '../support/index.ts'
import { reservedPort } from '../support/port.ts'
import { bodies, strings, stringWhen, take } from './records.ts'
import {
  basinOn,
  type ClientBasin,
  openCounts,
  type Service,
  startService,
  TRANSPORTS,
  until,
  untilIdle,
} from './support.ts'

/** Enough retries for a restart on a busy machine. */
const retry = { maxAttempts: 50, minBaseDelayMillis: 20, maxBaseDelayMillis: 100 }

const open: { service?: Service; basin?: ClientBasin } = {}

afterEach(async () => {
  await open.basin?.close()
  if (open.service) {
    await untilIdle(open.service)
    await open.service.close()
  }
})

describe.each(TRANSPORTS)('a restart of the service by $name', (transport) => {
  async function start(engine: { clock?: Clock } = {}) {
    const storage = testStorage()
    const port = await reservedPort()
    open.service = await startService({ storage, port, ...engine })
    open.basin = await basinOn(open.service.server.url, transport, { retry })
    return {
      basin: open.basin,
      async stop() {
        await open.service!.close()
      },
      async restart() {
        await open.service!.close()
        open.service = await startService({ storage, port, ...engine })
      },
      async startAgain() {
        open.service = await startService({ storage, port, ...engine })
      },
    }
  }

  it('delivers every record once to a follower', async () => {
    const { basin, restart } = await start()
    const stream = await basin.stream('0', '1', '2')
    const follower = await stream.readSession({ start: { from: { seqNum: 0 } } })
    expect(bodies(await take(follower, 3))).toEqual(['0', '1', '2'])
    await follower.caughtUp()
    for (let round = 1; round <= 3; round++) {
      await restart()
      await stream.append(strings(`${round} a`, `${round} b`))
      expect(bodies(await take(follower, 2))).toEqual([`${round} a`, `${round} b`])
    }
    expect(follower.nextReadPosition()?.seqNum).toBe(9)
    await follower.cancel()
  })

  it('delivers records that were appended while a follower was disconnected', async () => {
    const { basin, stop, startAgain } = await start()
    const stream = await basin.stream('before')
    const follower = await stream.readSession({ start: { from: { seqNum: 0 } } })
    expect(bodies(await take(follower, 1))).toEqual(['before'])
    const caughtUp = await follower.caughtUp()
    expect(caughtUp.seqNum).toBe(1)
    await stop()
    await startAgain()
    // Before or after the follower has reconnected.
    await open.service!.hw.basin(basin.name).stream(stream.name).append('meanwhile')
    expect(bodies(await take(follower, 1))).toEqual(['meanwhile'])
    await until(() => openCounts(open.service!).waitingReads === 1)
    await follower.cancel()
  })

  it('stores each record of a conditional append session once', async () => {
    const { basin, restart } = await start()
    const stream = await basin.stream()
    const session = await stream.appendSession()
    for (let i = 0; i < 4; i++) {
      if (i > 0) await restart()
      const ticket = await session.submit(stringWhen(`${i}`, { matchSeqNum: i }))
      expect((await ticket.ack()).end.seqNum).toBe(i + 1)
    }
    await session.close()
    const { records } = await stream.read({ start: { from: { seqNum: 0 } } })
    expect(bodies(records)).toEqual(['0', '1', '2', '3'])
  })

  it('keeps configurations, fencing tokens and trim points', async () => {
    const clock = testClock()
    const { basin, restart } = await start({ clock })
    const stream = await basin.stream('a', 'b')
    await stream.append(AppendInput.create([AppendRecord.fence('mine'), AppendRecord.trim(1)]))
    await restart()
    await expect(stream.append(stringWhen('x', { fencingToken: '' }))).rejects.toMatchObject({
      expectedFencingToken: 'mine',
    })
    await clock.advance('10s')
    const { records } = await stream.read({ start: { from: { seqNum: 0 } } })
    expect(records.map(({ seqNum }) => seqNum)).toEqual([1, 2, 3])
    expect(await basin.basin.streams.getConfig({ stream: stream.name })).toMatchObject({
      timestamping: { uncapped: true },
    })
  })
})
