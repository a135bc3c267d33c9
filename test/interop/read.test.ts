import { AppendInput, AppendRecord, RangeNotSatisfiableError } from '@s2-dev/streamstore'
import { describe, expect, it } from 'vitest'
import { bodies, strings } from './records.ts'
import { basinOfFile, FETCH, serviceOfFile } from './support.ts'

const { server } = await serviceOfFile()
const basin = await basinOfFile(server.url, FETCH)

/** Records 0 to 4, at 1000, 2000, ... milliseconds. */
async function fiveRecords() {
  const stream = await basin.stream()
  const records = [0, 1, 2, 3, 4].map((i) =>
    AppendRecord.string({ body: `${i}`, timestamp: (i + 1) * 1_000, headers: [['n', `${i}`]] }),
  )
  await stream.append(AppendInput.create(records))
  return stream
}

const tail = { seqNum: 5, timestamp: new Date(5_000) }

describe('read', () => {
  it.each([
    ['a timestamp', { timestamp: 2_001 }, ['2', '3', '4']],
    ['a date', { timestamp: new Date(4_000) }, ['3', '4']],
    ['an offset from the tail', { tailOffset: 1 }, ['4']],
  ])('starts at %s', async (_, from, expected) => {
    const stream = await fiveRecords()
    const batch = await stream.read({ start: { from } })
    expect(bodies(batch.records)).toEqual(expected)
    expect(batch.tail).toEqual(tail)
  })

  it('returns headers, as text and as bytes', async () => {
    const stream = await fiveRecords()
    const text = await stream.read({ start: { from: { seqNum: 1 } } })
    expect(text.records[0]).toEqual({
      seqNum: 1,
      timestamp: new Date(2_000),
      body: '1',
      headers: [['n', '1']],
    })
    const bytes = await stream.read({ start: { from: { seqNum: 1 } } }, { as: 'bytes' })
    expect(bytes.records[0]).toEqual({
      seqNum: 1,
      timestamp: new Date(2_000),
      body: Uint8Array.of(0x31),
      headers: [[Uint8Array.of(0x6e), Uint8Array.of(0x31)]],
    })
  })

  it.each([
    ['the tail', {}],
    ['the tail, clamped', { from: { seqNum: 6 }, clamp: true }],
  ])('rejects a start at %s with 416 and the tail', async (_, start) => {
    const stream = await fiveRecords()
    const reading = stream.read({ start })
    await expect(reading).rejects.toBeInstanceOf(RangeNotSatisfiableError)
    await expect(reading).rejects.toMatchObject({ status: 416, tail })
  })

  it('waits at the tail for a record', async () => {
    const stream = await fiveRecords()
    const reading = stream.read({ start: { from: { seqNum: 5 } }, stop: { waitSecs: 60 } })
    const ack = await stream.append(strings('new'))
    const batch = await reading
    expect(bodies(batch.records)).toEqual(['new'])
    // Absent if the append was faster than the read.
    expect([undefined, ack.tail.seqNum]).toContain(batch.tail?.seqNum)
  })
})
