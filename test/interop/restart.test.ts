import { afterEach, describe, expect, it } from 'vitest'
import { testStorage } from '../support/index.ts'
import { startRelay } from '../support/relay.ts'
import { bodies, strings, stringWhen, take } from './records.ts'
import { basinOn, type ClientBasin, FETCH, S2S, type Service, startService, untilIdle } from './support.ts'

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

describe.each([FETCH, S2S])('a restart of the service by $name', (transport) => {
  async function start() {
    const storage = testStorage()
    open.service = await startService({ storage })
    // The service gets another port, which another program may have had meanwhile.
    const { url } = await startRelay(() => open.service!.server.port)
    open.basin = await basinOn(url, transport, { retry })
    return {
      basin: open.basin,
      async restart() {
        await open.service!.close()
        open.service = await startService({ storage })
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
})
