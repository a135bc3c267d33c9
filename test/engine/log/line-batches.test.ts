import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { AppendSession, Stream } from '../../../src/index.ts'
import { lineBatch } from '../../../src/model/line-batch.ts'
import { StorageConflict } from '../../../src/storage/errors.ts'
import { bodies, gated, openEngine, type TestEngine, testStorage } from '../../support/index.ts'
import { linesOf } from '../../support/lines.ts'

const MIB = 1024 * 1024
const TEXTS = ['one', '', 'x'.repeat(100), 'ü']

let storage: ReturnType<typeof gated>
let engine: TestEngine
beforeEach(async () => {
  storage = gated(testStorage())
  engine = await openEngine({ storage, limits: { sessionInFlightBytes: MIB } })
})
afterEach(() => engine.hw.close())

/** Submits lines, and changes their memory as soon as the call returns. */
function submitAndReuse(session: AppendSession) {
  const lines = linesOf(TEXTS, 3)
  const submitted = session.submitBatch(lineBatch(lines))
  lines.bytes.fill(0)
  lines.ends.fill(0)
  return submitted
}

async function storedBodies(stream: Stream, seqNum: number) {
  return (await stream.readBatch({ seqNum })).records.map(({ body }) => body)
}

describe('lines of a session are stored as they were given', () => {
  it('each as a record, in order, acknowledged as a batch', async () => {
    const { stream } = engine
    const session = await stream.appendSession()
    const tickets = [
      await submitAndReuse(session),
      await session.submit('between'),
      await submitAndReuse(session),
    ]
    const acks = await Promise.all(tickets.map((ticket) => ticket.ack()))
    await session.close()
    expect(acks.map(({ start, end }) => [start.seqNum, end.seqNum])).toEqual([
      [0, 4],
      [4, 5],
      [5, 9],
    ])
    expect(await storedBodies(stream, 0)).toEqual([...TEXTS, 'between', ...TEXTS])
  })

  it('to followers', async () => {
    const { stream } = engine
    await stream.append('first')
    const batches = stream.follow({ seqNum: 0, count: 5, waitMs: 60_000 }).batches()
    expect(bodies((await batches.next()).value!)).toEqual(['first'])
    const next = batches.next()
    const session = await stream.appendSession()
    await submitAndReuse(session)
    await session.close()
    expect(bodies((await next).value!)).toEqual(TEXTS)
  })

  it('when they wait for bytes in flight', async () => {
    const { stream } = engine
    const session = await stream.appendSession()
    storage.holding = true
    await session.submit('y'.repeat(MIB - 8))
    const waiting = submitAndReuse(session)
    storage.holding = false
    storage.release()
    await waiting
    await session.close()
    expect(await storedBodies(stream, 1)).toEqual(TEXTS)
  })

  it('when they conflict after they were passed to the storage', async () => {
    const { stream } = engine
    await stream.append('first')
    let conflicts = 0
    storage.onAppend = () => {
      if (conflicts++ < 2) throw new StorageConflict('another head')
    }
    const session = await stream.appendSession()
    await submitAndReuse(session)
    await session.close()
    expect(conflicts).toBeGreaterThan(2)
    expect(await storedBodies(stream, 1)).toEqual(TEXTS)
  })

  it('on an encrypted stream', async () => {
    await engine.hw.createBasin('encrypted', { streamCipher: 'aes-256-gcm' })
    const encryptionKey = new Uint8Array(32).fill(1)
    const stream = engine.hw.basin('encrypted').stream('stream', { encryptionKey })
    const session = await stream.appendSession()
    await submitAndReuse(session)
    await session.close()
    expect(await storedBodies(stream, 0)).toEqual(TEXTS)
  })

  it('unless a condition fails, which ends the session', async () => {
    const { stream } = engine
    const session = await stream.appendSession()
    const refused = await session.submitBatch(lineBatch(linesOf(TEXTS), { matchSeqNum: 7 }))
    await expect(refused.ack()).rejects.toMatchObject({ code: 'seq_num_mismatch' })
    await expect(session.close()).rejects.toMatchObject({ code: 'seq_num_mismatch' })
  })
})
