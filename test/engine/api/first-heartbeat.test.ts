import { expect, it } from 'vitest'
import { openEngine } from '../../support/index.ts'

it('the first heartbeat has the tail of what was delivered, whenever an append is durable', async () => {
  const { hw } = await openEngine()
  for (let turns = 0; turns < 60; turns++) {
    const stream = hw.basin('my-basin', { autoCreate: true }).stream(`stream-${turns}`)
    await stream.append('before')
    const events = stream.follow({ seqNum: 0 }).events()
    const delivered = (async () => {
      let count = 0
      for await (const event of events) {
        if (event.kind === 'heartbeat') return { count, tail: event.tail.seqNum }
        count += event.batch.records.length
      }
      return undefined
    })()
    for (let turn = 0; turn < turns; turn++) await undefined
    await stream.append('meanwhile')
    const { count, tail } = (await delivered)!
    expect(tail).toBe(count)
  }
})
