import { readFile } from 'node:fs/promises'
import { AppendRecord, BatchTransform, Producer, type ReadSession } from '@s2-dev/streamstore'
import { describe, expect, it } from 'vitest'
import { basinOfFile, FETCH, S2S, S2S_GZIP, serviceOfFile, TRANSPORTS } from './support.ts'

const { server, hw } = await serviceOfFile()

/** The source of the TypeScript compiler: real text, line by line, of at least 5 MB. */
const text = await readFile(
  new URL('../../node_modules/typescript/lib/typescript.js', import.meta.url),
  'utf8',
)
const lines = text.slice(0, text.indexOf('\n', 5_500_000)).split('\n')
const expected = lines.join('\n')

it('is a text worth its name', () => {
  expect(expected.length).toBeGreaterThan(5_000_000)
  expect(lines.length).toBeGreaterThan(50_000)
})

/** Reads as many records as the text has lines, each of which must have its line's number. */
async function readLines(session: ReadSession): Promise<string> {
  const received: string[] = []
  const reader = session.getReader()
  while (received.length < lines.length) {
    const { done, value } = await reader.read()
    if (done) throw new Error(`ended after ${received.length} lines`)
    if (value.seqNum !== received.length) throw new Error(`${value.seqNum} instead of ${received.length}`)
    received.push(value.body)
  }
  await reader.cancel()
  return received.join('\n')
}

describe('a long text, line by line', async () => {
  const followedBy = async (transport: (typeof TRANSPORTS)[number], stream: string, basin: string) => {
    const client = await basinOfFile(server.url, transport)
    const handle = client.s2.basin(basin).stream(stream, { forceTransport: transport.force })
    const session = await handle.readSession({ start: { from: { seqNum: 0 } } })
    return { session, close: () => handle.close() }
  }

  it('arrives at ten live followers as the published producer sends it', { timeout: 120_000 }, async () => {
    const basin = await basinOfFile(server.url, S2S)
    const stream = await basin.stream()
    const followers = []
    for (let i = 0; i < 10; i++) {
      const transport = [FETCH, S2S, S2S_GZIP][i % 3]!
      followers.push(await followedBy(transport, stream.name, basin.name))
    }
    await Promise.all(followers.map(({ session }) => session.caughtUp()))
    const received = Promise.all(followers.map(({ session }) => readLines(session)))

    const producer = new Producer(
      new BatchTransform({ lingerDurationMillis: 5 }),
      await stream.appendSession(),
    )
    let last: Awaited<ReturnType<Producer['submit']>> | undefined
    for (const body of lines) last = await producer.submit(AppendRecord.string({ body }))
    expect((await last!.ack()).seqNum()).toBe(lines.length - 1)
    await producer.close()

    expect((await received).map((text) => text === expected)).toEqual(followers.map(() => true))
    for (const { close } of followers) await close()
  })

  it('is the same when our own producer sends it, and history is read', { timeout: 120_000 }, async () => {
    const basin = await basinOfFile(server.url, FETCH)
    const stream = await basin.stream()
    const producer = hw.basin(basin.name).stream(stream.name).producer()
    for (const line of lines) await producer.submit(line)
    await producer.close()
    for (const transport of TRANSPORTS) {
      const follower = await followedBy(transport, stream.name, basin.name)
      expect((await readLines(follower.session)) === expected, transport.name).toBe(true)
      await follower.close()
    }
  })
})
