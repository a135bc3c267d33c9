import { describe, expect, it } from 'vitest'
import type { AppendOptions, AppendSession, RecordInput } from '../../src/index.ts'
import { bodies } from '../support/index.ts'
import { connectUnreliably, failureOf, whileTimePasses } from './network.ts'

type Batch = readonly [input: RecordInput | readonly RecordInput[], options?: AppendOptions]

/** Submits all batches, of which the first is on its way while the others wait. Returns their acks. */
async function submitAll(session: AppendSession, batches: readonly Batch[]) {
  const tickets = await Promise.all(batches.map(([input, options]) => session.submit(input, options)))
  return tickets.map((ticket) => ticket.ack())
}

const LETTERS: readonly Batch[] = [['a'], [['b', 'c']], ['d'], ['e']]
const CONDITIONAL: readonly Batch[] = [
  ['a', { matchSeqNum: 0 }],
  [['b', 'c'], { matchSeqNum: 1 }],
  ['d', { matchSeqNum: 3 }],
]

/** A session whose requests are counted from here on, and the records of each. */
async function openSession() {
  const connected = await connectUnreliably()
  const session = await connected.stream.appendSession()
  connected.requests.length = 0
  return { ...connected, session }
}

describe('append sessions over single requests', () => {
  it('append the batches that wait together, in order, and acknowledge each', async () => {
    const { clock, network, requests, session, stream } = await openSession()
    network.delay('5s', { nth: 1 })
    const submitted = await submitAll(session, LETTERS)
    await clock.advance(4_999)
    expect(requests).toHaveLength(1)
    const acks = await whileTimePasses(clock, Promise.all(submitted))
    expect(requests).toHaveLength(2)
    const records = await stream.read().toArray()
    expect(records.map(({ body }) => body)).toEqual(['a', 'b', 'c', 'd', 'e'])
    const position = (seqNum: number) => ({ seqNum, timestamp: records[seqNum]!.timestamp })
    const ending = (seqNum: number) => ({ seqNum, timestamp: records[seqNum - 1]!.timestamp })
    expect(acks.map(({ start, end }) => [start, end])).toEqual([
      [position(0), ending(1)],
      [position(1), ending(3)],
      [position(3), ending(4)],
      [position(4), ending(5)],
    ])
    expect(acks.map(({ tail }) => tail.seqNum)).toEqual([1, 5, 5, 5])
  })

  it('keep appends of the stream between the batches that were submitted around them', async () => {
    const { clock, network, session, stream, ofEngine } = await openSession()
    network.delay('5s', { nth: 1 })
    const acks = await submitAll(session, [['a'], ['b'], ['c']])
    const between = stream.append('between')
    const others = await submitAll(session, [['d'], ['e']])
    await whileTimePasses(clock, Promise.all([...acks, between, ...others]))
    expect(bodies(await ofEngine.readBatch())).toEqual(['a', 'b', 'c', 'between', 'd', 'e'])
  })

  it.each<[string, Batch, Batch]>([
    ['more than 1,000 records', [Array(501).fill('')], [Array(500).fill('')]],
    ['more than 1 MiB', [new Uint8Array(600_000)], [new Uint8Array(600_000)]],
    ['another fencing token', ['b', { fencingToken: '' }], ['c']],
    ['a condition that the batch before does not have', ['b'], ['c', { matchSeqNum: 2 }]],
    ['a timestamp', ['b'], [{ body: 'c', timestamp: 1 }]],
    ['a command', [{ headers: [['', 'fence']], body: 'token' }], ['c']],
  ])('append a batch by a request of its own because of %s', async (_, second, third) => {
    const { clock, network, requests, session } = await openSession()
    network.delay('5s', { nth: 1 })
    await whileTimePasses(clock, Promise.all(await submitAll(session, [['a'], second, third])))
    expect(requests).toHaveLength(3)
  })

  it.each(['drop', 'loseResponse'] as const)(
    'store batches with consecutive conditions once after %s',
    async (fault) => {
      const { clock, network, requests, session, ofEngine } = await openSession()
      network.delay('5s', { nth: 1 })
      network[fault]({ nth: 2 })
      const acks = await whileTimePasses(clock, Promise.all(await submitAll(session, CONDITIONAL)))
      expect(acks.map(({ start, end }) => [start.seqNum, end.seqNum])).toEqual([
        [0, 1],
        [1, 3],
        [3, 4],
      ])
      expect(bodies(await ofEngine.readBatch())).toEqual(['a', 'b', 'c', 'd'])
      expect(requests.filter(({ method }) => method === 'POST').length).toBe(3)
    },
  )

  it('report an unknown outcome of all batches of a lost request, and append none behind it', async () => {
    const { clock, network, session, ofEngine } = await openSession()
    network.delay('5s', { nth: 1 })
    network.loseResponse({ nth: 2 })
    const [first, ...others] = await submitAll(session, LETTERS)
    const failures = Promise.all(others.map(failureOf))
    await whileTimePasses(clock, first!)
    for (const failure of await whileTimePasses(clock, failures)) {
      expect(failure).toMatchObject({ code: 'unavailable', mayHaveEffects: true })
    }
    expect(await failureOf(session.submit('more'))).toMatchObject({ code: 'unavailable' })
    expect(bodies(await ofEngine.readBatch())).toEqual(['a', 'b', 'c', 'd', 'e'])
  })

  it('reject the first of the batches that another writer overtook, and discard the others', async () => {
    const { clock, network, session, ofEngine } = await openSession()
    network.delay('5s', { nth: 1 })
    network.delay('10s', { nth: 2 })
    const [first, ...others] = await submitAll(session, CONDITIONAL)
    const failures = Promise.all(others.map(failureOf))
    await whileTimePasses(clock, first!)
    await ofEngine.append('of another writer')
    const [second, third] = await whileTimePasses(clock, failures)
    expect(second).toMatchObject({ code: 'seq_num_mismatch', seqNum: 2, mayHaveEffects: false })
    expect(third).toMatchObject({ code: 'append_discarded', cause: second })
    expect(bodies(await ofEngine.readBatch())).toEqual(['a', 'of another writer'])
  })

  it('reject the first of the batches that the server rejects together, and discard the others', async () => {
    const { clock, network, session, ofEngine } = await openSession()
    network.delay('5s', { nth: 1 })
    network.respond(422, { nth: 2, code: 'invalid' })
    const [first, ...others] = await submitAll(session, LETTERS)
    const failures = Promise.all(others.map(failureOf))
    await whileTimePasses(clock, first!)
    const [second, ...discarded] = await whileTimePasses(clock, failures)
    expect(second).toMatchObject({ code: 'invalid', mayHaveEffects: false })
    for (const error of discarded) expect(error).toMatchObject({ code: 'append_discarded', cause: second })
    expect(bodies(await ofEngine.readBatch())).toEqual(['a'])
  })

  it('find at their first append that the stream is missing', async () => {
    const { hw } = await connectUnreliably({ autoCreate: false })
    const session = await hw.basin('basin').stream('missing').appendSession()
    const [acked] = await submitAll(session, [['a']])
    expect(await failureOf(acked!)).toMatchObject({ code: 'stream_not_found', mayHaveEffects: false })
  })
})
