import { open } from 'node:fs/promises'
import { createServer, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import { host, type Prepared } from '../harness/host.ts'
import { bodiesFrom, recordsOfBatch, timestampOf } from '../harness/records.ts'

const MIB = 1_048_576
/** As many as do not fit into the cache of a processor. */
const DISTINCT_FRAMES = 64

/** Servers over HTTP/2 that know nothing but the lengths of frames. */
host({
  /** Acknowledges each frame as a batch of `records` records. */
  acks({ records }: { records: number }) {
    return listen((stream) => {
      let seqNum = 0
      const frames = new FrameCounter(() => {
        stream.write(frameOf(ackOf(seqNum, seqNum + records)))
        seqNum += records
      })
      stream.respond({ ':status': 200, 'content-type': 's2s/proto' })
      stream.on('data', (chunk: Buffer) => frames.read(chunk))
      stream.on('end', () => stream.end())
    })
  },

  /** Sends `size` records of `bytes` bytes in full batches. */
  records({ size, bytes }: { size: number; bytes: number }) {
    const each = recordsOfBatch(bytes)
    const frames = Array.from({ length: DISTINCT_FRAMES }, (_, index) =>
      frameOf(batchOf(index * each, bodiesFrom(index, each, bytes))),
    )
    return listen((stream) => {
      let remaining = Math.ceil(size / each)
      const send = (): void => {
        while (remaining-- > 0) if (!stream.write(frames[remaining % DISTINCT_FRAMES]!)) return
        stream.end()
      }
      stream.respond({ ':status': 200, 'content-type': 's2s/proto' })
      stream.on('drain', send)
      send()
    })
  },

  /**
   * Reads the frames of full batches from a file, one ahead, verifies a checksum of each, and sends them.
   * With `reuses`, into three buffers that take turns.
   */
  async 'records on disk'({ size, bytes, directory, reuses = false }: RecordsOnDisk) {
    const each = recordsOfBatch(bytes)
    const file = await open(join(directory, 'frames'), 'w+')
    const frames: { position: number; length: number; checksum: number }[] = []
    let end = 0
    for (let first = 0; first < size; first += each) {
      const frame = frameOf(batchOf(first, bodiesFrom(first, Math.min(each, size - first), bytes)))
      frames.push({ position: end, length: frame.length, checksum: crc32(frame) })
      await file.write(frame)
      end += frame.length
    }
    const longest = Math.max(...frames.map(({ length }) => length))
    const listening = await listen(async (stream) => {
      const buffers = Array.from({ length: reuses ? 3 : 0 }, () => Buffer.allocUnsafeSlow(longest))
      const read = (index: number) => {
        const frame = frames[index]
        if (frame === undefined) return undefined
        const { position, length } = frame
        return file.read(buffers[index % 3] ?? Buffer.allocUnsafeSlow(length), 0, length, position)
      }
      stream.respond({ ':status': 200, 'content-type': 's2s/proto' })
      let written: Promise<unknown> = Promise.resolve()
      let next = read(0)
      for (const [index, { length, checksum }] of frames.entries()) {
        const { buffer } = (await next)!
        const frame = buffer.subarray(0, length)
        // Before the buffer of the write before this one is read into again.
        await written
        next = read(index + 1)
        if (crc32(frame) !== checksum) throw new Error(`frame ${index} is damaged`)
        written = new Promise((resolve) => stream.write(frame, resolve))
      }
      stream.end()
    })
    return { ...listening, close: () => file.close() }
  },
})

interface RecordsOnDisk {
  readonly size: number
  readonly bytes: number
  readonly directory: string
  readonly reuses?: boolean
}

async function listen(onStream: (stream: ServerHttp2Stream) => unknown): Promise<Prepared> {
  const server = createServer({
    settings: { initialWindowSize: 2 * MIB, maxFrameSize: 2 * MIB },
    maxSessionMemory: 64,
  })
  server.on('session', (session) => session.setLocalWindowSize(16 * MIB))
  server.on('stream', onStream)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { info: { port: (server.address() as AddressInfo).port } }
}

/** Calls back at the end of each frame: three bytes of length, and as many bytes. */
class FrameCounter {
  readonly #onFrame: () => void
  #prefixBytes = 0
  #length = 0

  constructor(onFrame: () => void) {
    this.#onFrame = onFrame
  }

  read(chunk: Buffer): void {
    for (let at = 0; at < chunk.length; ) {
      if (this.#prefixBytes < 3) {
        this.#length = (this.#length << 8) | chunk[at++]!
        this.#prefixBytes++
        continue
      }
      const skipped = Math.min(this.#length, chunk.length - at)
      this.#length -= skipped
      at += skipped
      if (this.#length > 0) return
      this.#prefixBytes = 0
      this.#onFrame()
    }
  }
}

function frameOf(message: Uint8Array): Buffer {
  const frame = Buffer.alloc(4 + message.length)
  frame.writeUIntBE(message.length + 1, 0, 3)
  frame.set(message, 4)
  return frame
}

function ackOf(start: number, end: number): Uint8Array {
  const writer = new BinaryWriter()
  for (const [field, seqNum] of [start, end, end].entries()) {
    writer
      .tag(field + 1, WireType.LengthDelimited)
      .fork()
      .tag(1, WireType.Varint)
      .uint64(seqNum)
      .tag(2, WireType.Varint)
      .uint64(timestampOf(0))
      .join()
  }
  return writer.finish()
}

function batchOf(first: number, bodies: readonly Uint8Array[]): Uint8Array {
  const writer = new BinaryWriter()
  for (const [index, body] of bodies.entries()) {
    writer
      .tag(1, WireType.LengthDelimited)
      .fork()
      .tag(1, WireType.Varint)
      .uint64(first + index)
      .tag(2, WireType.Varint)
      .uint64(timestampOf(first + index))
      .tag(4, WireType.LengthDelimited)
      .bytes(body)
      .join()
  }
  return writer.finish()
}
