import { connect, type Socket } from 'node:net'
import type { Prepared } from '../harness/host.ts'

const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'
const HEADER_BYTES = 9
const WINDOW_MAX = 0x7fff_ffff
/** The window of a connection before the first update. */
const WINDOW_DEFAULT = 65_535
const MIB = 1_048_576

const DATA = 0x0
const HEADERS = 0x1
const RST_STREAM = 0x3
const SETTINGS = 0x4
const GOAWAY = 0x7
const WINDOW_UPDATE = 0x8
const ACK = 0x1
const END_STREAM = 0x1
const END_HEADERS = 0x4
const SETTING_INITIAL_WINDOW = 0x4

export interface Download {
  readonly port: number
  readonly headers: Readonly<Record<string, string>>
  /** The number of records, and the bytes of each. */
  readonly size: number
  readonly bytes: number
}

/**
 * Receives a stream over HTTP/2 and counts its bytes. It reads the lengths of frames and nothing else, so
 * that it costs less than any server. The units are MiB.
 */
export function downloads({ port, headers, size, bytes }: Download): Prepared {
  const expected = size * bytes
  const request = encodeHeaders({
    ':method': 'GET',
    ':scheme': 'http',
    ':authority': 'localhost',
    ':path': `/v1/streams/streams%2F1/records?seq_num=0&count=${size}`,
    ...headers,
  })
  return {
    async turn(count) {
      for (let i = 0; i < count; i++) {
        const received = await download(port, request)
        if (received < expected) throw new Error(`received ${received} bytes; expected at least ${expected}`)
      }
      return (count * expected) / MIB
    },
  }
}

function download(port: number, request: Buffer): Promise<number> {
  return new Promise((resolve, reject) => {
    let received = 0
    const frames = new FrameReader((type, flags, length) => {
      if (type === SETTINGS && (flags & ACK) === 0) socket.write(frame(SETTINGS, ACK, 0, Buffer.alloc(0)))
      if (type === RST_STREAM || type === GOAWAY) reject(new Error(`received a frame of type ${type}`))
      if (type !== DATA) return
      received += length
      if ((flags & END_STREAM) !== 0) {
        socket.destroy()
        resolve(received)
      }
    })
    const receive = (length: number, chunk: Buffer) => {
      frames.read(chunk, length)
      return true
    }
    const onread = { buffer: Buffer.alloc(MIB), callback: receive as never }
    const socket: Socket = connect({ port, host: '127.0.0.1', onread })
    socket.setNoDelay(true).once('error', reject)
    const settings = Buffer.alloc(6)
    settings.writeUInt16BE(SETTING_INITIAL_WINDOW)
    settings.writeUInt32BE(WINDOW_MAX, 2)
    const window = Buffer.alloc(4)
    window.writeUInt32BE(WINDOW_MAX - WINDOW_DEFAULT)
    const frameOfRequest = frame(HEADERS, END_STREAM | END_HEADERS, 1, request)
    const beginning = [frame(SETTINGS, 0, 0, settings), frame(WINDOW_UPDATE, 0, 0, window), frameOfRequest]
    socket.write(Buffer.concat([Buffer.from(PREFACE), ...beginning]))
  })
}

/** Finds the beginnings of frames. */
class FrameReader {
  readonly #onFrame: (type: number, flags: number, length: number) => void
  readonly #header = Buffer.alloc(HEADER_BYTES)
  #headerBytes = 0
  #payloadBytes = 0

  constructor(onFrame: (type: number, flags: number, length: number) => void) {
    this.#onFrame = onFrame
  }

  read(chunk: Buffer, end: number): void {
    for (let at = 0; at < end; ) {
      const skipped = Math.min(this.#payloadBytes, end - at)
      this.#payloadBytes -= skipped
      at += skipped
      const copied = chunk.copy(
        this.#header,
        this.#headerBytes,
        at,
        Math.min(end, at + HEADER_BYTES - this.#headerBytes),
      )
      this.#headerBytes += copied
      at += copied
      if (this.#headerBytes < HEADER_BYTES) continue
      this.#headerBytes = 0
      this.#payloadBytes = this.#header.readUIntBE(0, 3)
      this.#onFrame(this.#header[3]!, this.#header[4]!, this.#payloadBytes)
    }
  }
}

function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const header = Buffer.alloc(HEADER_BYTES)
  header.writeUIntBE(payload.length, 0, 3)
  header[3] = type
  header[4] = flags
  header.writeUInt32BE(stream, 5)
  return Buffer.concat([header, payload])
}

/** As literals without indexing, of less than 127 bytes each. */
function encodeHeaders(headers: Readonly<Record<string, string>>): Buffer {
  const literal = (text: string) => [Buffer.of(text.length), Buffer.from(text)]
  return Buffer.concat(
    Object.entries(headers).flatMap(([name, value]) => [Buffer.of(0), ...literal(name), ...literal(value)]),
  )
}
