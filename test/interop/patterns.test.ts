// @module-tag slow

import { AppendInput, AppendRecord, type S2Stream } from '@s2-dev/streamstore'
import { serialization } from '@s2-dev/streamstore-patterns'
import { describe, expect, it } from 'vitest'
import { testClock } from '../support/index.ts'
import { longText } from './records.ts'
import { basinOfFile, FETCH, S2S, serviceOfFile } from './support.ts'

const {
  chunkBytes,
  DeserializingReadSession,
  frameChunksToRecords,
  injectDedupeHeaders,
  SerializingAppendSession,
} = serialization

const { server } = await serviceOfFile({ clock: testClock() })

interface Message {
  readonly id: number
  readonly text: string
}

const encode = (message: Message) => new TextEncoder().encode(JSON.stringify(message))
const decode = (bytes: Uint8Array) => JSON.parse(new TextDecoder().decode(bytes)) as Message

/** A session with a bound: a typed one cannot be cancelled, because it keeps its source locked. */
function upTo(stream: S2Stream, count: number) {
  const stop = { limits: { count }, waitSecs: 60 }
  return stream.readSession({ start: { from: { seqNum: 0 } }, stop }, { as: 'bytes' })
}

async function readMessages<Value>(messages: ReadableStream<Value>, count: number): Promise<Value[]> {
  const reader = messages.getReader()
  const received: Value[] = []
  while (received.length < count) {
    const { done, value } = await reader.read()
    if (done) throw new Error(`ended after ${received.length} of ${count} messages`)
    received.push(value)
  }
  reader.releaseLock()
  return received
}

describe.each([FETCH, S2S])('typed sessions by $name', async (transport) => {
  const basin = await basinOfFile(server.url, transport)

  it('carry messages to a follower, even larger ones than a record', async () => {
    const stream = await basin.stream()
    const follower = new DeserializingReadSession(await upTo(stream, 5), decode)
    const writer = new SerializingAppendSession<Message>(await stream.appendSession(), encode, {
      dedupeSeq: 0,
      matchSeqNum: 0,
    })
    const messages = [
      { id: 0, text: 'hello' },
      { id: 1, text: longText(2_500_000) },
      { id: 2, text: 'ünïcödé ☃' },
    ]
    expect(await writer.submit(messages[0]!)).toEqual({ start: 0, end: 1 })
    expect(await writer.submit(messages[1]!)).toEqual({ start: 1, end: 4 })
    expect(await writer.submit(messages[2]!)).toEqual({ start: 4, end: 5 })
    expect(await readMessages(follower, 3)).toEqual(messages)
    expect((await follower.getReader().read()).done).toBe(true)
    await writer.close()
  })

  it('carry a response whose stream is trimmed and fenced while its reader still connects', async () => {
    const messages = Array.from({ length: 5 }, (_, id) => ({ id, text: `chunk ${id}` }))
    for (let i = 0; i < 5; i++) {
      const stream = await basin.stream()
      const writer = new SerializingAppendSession<Message>(await stream.appendSession(), encode, {
        dedupeSeq: 0,
      })
      const connecting = upTo(stream, messages.length)
      await Promise.all(messages.map((message) => writer.submit(message)))
      await writer.close()
      const end = [AppendRecord.trim(Number.MAX_SAFE_INTEGER), AppendRecord.fence('ended')]
      await stream.append(AppendInput.create(end))
      const late = upTo(stream, messages.length)
      for (const session of [connecting, late]) {
        const reader = new DeserializingReadSession(await session, decode)
        expect(await readMessages(reader, messages.length)).toEqual(messages)
      }
    }
  })

  it('drop repeated messages, and restart with the next writer', async () => {
    const stream = await basin.stream()
    const records = (writer: string, start: number, ...texts: string[]) => {
      const framed = texts.flatMap((text, id) => frameChunksToRecords(chunkBytes(encode({ id, text }), 20)))
      injectDedupeHeaders(framed, writer, start)
      return AppendInput.create(framed)
    }
    const twice = records('writer-1', 0, 'a longer text than one chunk takes', 'b')
    await stream.append(twice)
    await stream.append(twice)
    await stream.append(records('writer-2', 0, 'c'))
    const { tail } = await stream.checkTail()
    const reader = new DeserializingReadSession(await upTo(stream, tail.seqNum), decode)
    const texts = (await readMessages(reader, 3)).map(({ text }) => text)
    expect(texts).toEqual(['a longer text than one chunk takes', 'b', 'c'])
    expect((await reader.getReader().read()).done).toBe(true)
  })
})
