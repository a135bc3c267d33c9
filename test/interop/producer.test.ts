import { AppendRecord, BatchTransform, Producer } from '@s2-dev/streamstore'
import { describe, expect, it } from 'vitest'
import { all, bodies } from './records.ts'
import { basinOfFile, FETCH, S2S, serviceOfFile } from './support.ts'

const { server } = await serviceOfFile()

describe.each([FETCH, S2S])('producer by $name', async (transport) => {
  const basin = await basinOfFile(server.url, transport)

  it('batches records and acknowledges each one', async () => {
    const stream = await basin.stream()
    const batches = new BatchTransform({ lingerDurationMillis: 5, maxBatchRecords: 100 })
    const producer = new Producer(batches, await stream.appendSession())
    const tickets = []
    for (let i = 0; i < 250; i++) tickets.push(await producer.submit(AppendRecord.string({ body: `${i}` })))
    const acks = await Promise.all(tickets.map((ticket) => ticket.ack()))
    expect(acks.map((ack) => ack.seqNum())).toEqual(Array.from({ length: 250 }, (_, i) => i))
    expect(new Set(acks.map((ack) => ack.batchAppendAck())).size).toBeLessThan(250)
    await producer.close()
    const records = await all(
      await stream.readSession({ start: { from: { seqNum: 0 } }, stop: { limits: { count: 250 } } }),
    )
    expect(bodies(records)).toEqual(Array.from({ length: 250 }, (_, i) => `${i}`))
  })

  it('fails every record after the first failure', async () => {
    const stream = await basin.stream()
    const batches = new BatchTransform({ maxBatchRecords: 1, matchSeqNum: 0 })
    const producer = new Producer(batches, await stream.appendSession())
    expect((await (await producer.submit(AppendRecord.string({ body: 'mine' }))).ack()).seqNum()).toBe(0)
    await stream.append({ records: [AppendRecord.string({ body: 'intruder' })], meteredBytes: 16 })
    const ticket = await producer.submit(AppendRecord.string({ body: 'late' }))
    await expect(ticket.ack()).rejects.toMatchObject({ status: 412, expectedSeqNum: 2 })
    await expect(producer.close()).rejects.toMatchObject({ status: 412 })
    const { records } = await stream.read({ start: { from: { seqNum: 0 } } })
    expect(bodies(records)).toEqual(['mine', 'intruder'])
  })
})
