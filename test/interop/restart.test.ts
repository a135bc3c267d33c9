import { once } from 'node:events'
import { type AddressInfo, connect as connectTcp, createServer, type Server } from 'node:net'
import { AppendInput, AppendRecord } from '@s2-dev/streamstore'
import { afterEach, describe, expect, it } from 'vitest'
import type { Clock } from '../../src/index.ts'
import { testClock, testStorage } from '../support/index.ts'
import { bodies, strings, stringWhen, take } from './records.ts'
import { basinOn, type ClientBasin, FETCH, S2S, type Service, startService, untilIdle } from './support.ts'

/** Enough retries for a restart on a busy machine. */
const retry = { maxAttempts: 50, minBaseDelayMillis: 20, maxBaseDelayMillis: 100 }

const open: { service?: Service; basin?: ClientBasin; front?: Server } = {}

afterEach(async () => {
  await open.basin?.close()
  if (open.service) {
    await untilIdle(open.service)
    await open.service.close()
  }
  open.front?.close()
})

/** Relays connections to the service of the moment, whose own port another program may get meanwhile. */
async function startFront(): Promise<string> {
  open.front = createServer((accepted) => {
    const service = connectTcp(open.service!.server.port, '127.0.0.1')
    for (const [socket, other] of [
      [accepted, service],
      [service, accepted],
    ] as const) {
      socket.on('error', () => other.destroy()).on('close', () => other.destroy())
      socket.pipe(other)
    }
  }).listen(0, '127.0.0.1')
  await once(open.front, 'listening')
  return `http://127.0.0.1:${(open.front.address() as AddressInfo).port}`
}

describe.each([FETCH, S2S])('a restart of the service by $name', (transport) => {
  async function start(engine: { clock?: Clock } = {}) {
    const storage = testStorage()
    open.service = await startService({ storage, ...engine })
    open.basin = await basinOn(await startFront(), transport, { retry })
    return {
      basin: open.basin,
      async restart() {
        await open.service!.close()
        open.service = await startService({ storage, ...engine })
      },
    }
  }

  it('delivers every record once to a follower', { tags: ['slow'] }, async () => {
    const { basin, restart } = await start()
    const stream = await basin.stream('0', '1', '2')
    const follower = await stream.readSession({ start: { from: { seqNum: 0 } } })
    expect(bodies(await take(follower, 3))).toEqual(['0', '1', '2'])
    await follower.caughtUp()
    for (let round = 1; round <= 2; round++) {
      await restart()
      await stream.append(strings(`${round} a`, `${round} b`))
      expect(bodies(await take(follower, 2))).toEqual([`${round} a`, `${round} b`])
    }
    expect(follower.nextReadPosition()?.seqNum).toBe(7)
    await follower.cancel()
  })

  it('stores each record of a conditional append session once', async () => {
    const { basin, restart } = await start()
    const stream = await basin.stream()
    const session = await stream.appendSession()
    for (let i = 0; i < 3; i++) {
      if (i > 0) await restart()
      const ticket = await session.submit(stringWhen(`${i}`, { matchSeqNum: i }))
      expect((await ticket.ack()).end.seqNum).toBe(i + 1)
    }
    await session.close()
    const { records } = await stream.read({ start: { from: { seqNum: 0 } } })
    expect(bodies(records)).toEqual(['0', '1', '2'])
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
