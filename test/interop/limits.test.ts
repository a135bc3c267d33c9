import { describe, expect, it, onTestFinished } from 'vitest'
import { strings } from './records.ts'
import { basinOfFile, FETCH, S2S, serviceOfFile } from './support.ts'

let onRecords: () => void = () => {}
const { server, hw } = await serviceOfFile({
  limits: { openSessions: 1 },
  onRequest: ({ path }) => {
    if (path.endsWith('/records')) onRecords()
  },
})

describe.each([FETCH, S2S])('the published client by $name', async (transport) => {
  const basin = await basinOfFile(server.url, transport)

  /** Occupies the only session, and ends it when the client retries after a rejection. */
  async function occupy(stream: string): Promise<() => number> {
    const cursor = await hw.basin(basin.name).stream(stream).openCursor({ seqNum: 0 }, {})
    onTestFinished(() => cursor!.close())
    let requests = 0
    onRecords = () => {
      if (++requests === 2) cursor!.close()
    }
    return () => requests
  }

  it('retries an append session that was rejected', async () => {
    const stream = await basin.stream()
    const requests = await occupy(stream.name)
    const session = await stream.appendSession()
    const ack = await (await session.submit(strings('a'))).ack()
    expect(ack.end.seqNum).toBe(1)
    // By `fetch`, the client sends the appends of a session as single requests, which need no session.
    expect(requests()).toBeGreaterThanOrEqual(transport.force === 's2s' ? 2 : 1)
    await session.close()
  })

  it('retries a read session that was rejected', async () => {
    const stream = await basin.stream('a')
    const requests = await occupy(stream.name)
    const session = await stream.readSession({
      start: { from: { seqNum: 0 } },
      stop: { limits: { count: 1 } },
    })
    const bodies: string[] = []
    for await (const { body } of session) bodies.push(body)
    expect(bodies).toEqual(['a'])
    expect(requests()).toBeGreaterThanOrEqual(2)
  })
})
