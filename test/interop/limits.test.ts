import { describe, expect, it, onTestFinished } from 'vitest'
import { strings } from './records.ts'
import { basinOfFile, serviceOfFile, TRANSPORTS } from './support.ts'

let onRecords: () => void = () => {}
const { server, hw } = await serviceOfFile({
  limits: { openSessions: 1 },
  onRequest: ({ url }) => {
    if (new URL(url).pathname.endsWith('/records')) onRecords()
  },
})

describe.each(TRANSPORTS)('by $name', async (transport) => {
  const basin = await basinOfFile(server.url, transport)

  /** Takes the only place, and leaves it when the client comes again after it was refused. */
  async function occupy(stream: string): Promise<() => number> {
    const cursor = await hw.basin(basin.name).stream(stream).openRead({ seqNum: 0 })
    onTestFinished(() => cursor!.close())
    let requests = 0
    onRecords = () => {
      if (++requests === 2) cursor!.close()
    }
    return () => requests
  }

  it('an append session that is refused is opened again', async () => {
    const stream = await basin.stream()
    const requests = await occupy(stream.name)
    const session = await stream.appendSession()
    const ack = await (await session.submit(strings('a'))).ack()
    expect(ack.end.seqNum).toBe(1)
    // By fetch the client makes single appends of a session, which take no place.
    expect(requests()).toBeGreaterThanOrEqual(transport.force === 's2s' ? 2 : 1)
    await session.close()
  })

  it('a read session that is refused is opened again', async () => {
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
