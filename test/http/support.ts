import { fromBinary } from '@bufbuild/protobuf'
import { expect, onTestFinished } from 'vitest'
import { createHandler, type HandlerOptions } from '../../adapters/http/index.ts'
import type { VirtualClock } from '../../adapters/testing/index.ts'
import { type Engine, type OpenOptions, open } from '../../src/index.ts'
import { Prng } from '../../src/runtime/random.ts'
import { usageMetrics } from '../../src/usage/index.ts'
import { type Frame, FrameDecoder, messageOf } from '../../src/wire/frame.ts'
import { testClock, testStorage } from '../support/index.ts'
import { AppendAckSchema, ReadBatchSchema } from '../wire/gen/records_pb.ts'

export const BASIN = 'test-basin'
export const RECORDS = '/v1/streams/s/records'

export interface CallOptions {
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON. */
  readonly json?: unknown
  readonly body?: string | Uint8Array | ReadableStream<Uint8Array>
  readonly signal?: AbortSignal
  /** Null is none. Default {@link BASIN}. */
  readonly basin?: string | null
  readonly origin?: string
}

type Call = (method: string, path: string, options?: CallOptions) => Promise<Response>

export interface Service {
  readonly hw: Engine
  readonly clock: VirtualClock
  readonly call: Call
  readonly errors: unknown[]
  /** A handler with other options over the same engine. */
  with(options: HandlerOptions): Call
}

/** An engine with a virtual clock behind an open handler. */
export async function startService(
  options: HandlerOptions = {},
  engine: Partial<OpenOptions> = {},
): Promise<Service> {
  const clock = testClock()
  const prng = new Prng(7)
  const hw = await open({
    storage: testStorage(),
    usage: usageMetrics(),
    clock,
    random: () => prng.next(),
    ...engine,
  })
  onTestFinished(() => hw.close())
  const errors: unknown[] = []
  const withOptions = (more: HandlerOptions) =>
    caller(createHandler(hw, { auth: 'none', onError: (error) => errors.push(error), ...more }))
  return { hw, clock, errors, call: withOptions(options), with: withOptions }
}

/** The same with a basin that does not create streams on use, and the stream `s` in it. */
export async function startWithStream(
  options: HandlerOptions = {},
  engine: Partial<OpenOptions> = {},
): Promise<Service> {
  const service = await startService(options, engine)
  // With the defaults of a request.
  await service.hw.onConnection({}).createBasin(BASIN)
  await service.hw.basin(BASIN).createStream('s', { timestamping: { uncapped: true } })
  return service
}

/** The same with records in the stream, and a check that no read and no timer is left. */
export async function startWithRecords(...bodies: readonly string[]) {
  const service = await startWithStream()
  const stream = service.hw.basin(BASIN).stream('s')
  await stream.append(bodies)
  const baseline = service.clock.pending
  const expectNothingOpen = () => {
    expect(service.hw.stats()).toMatchObject({ openReads: 0, waitingReads: 0 })
    expect(service.clock.pending).toBe(baseline)
  }
  return { ...service, stream, expectNothingOpen }
}

function caller(handler: (request: Request) => Promise<Response>): Call {
  return (method, path, options) => handler(requestOf(method, path, options))
}

export function requestOf(
  method: string,
  path: string,
  { headers = {}, json, body, signal, basin = BASIN, origin = 'http://localhost:8080' }: CallOptions = {},
): Request {
  const sent = json === undefined ? body : JSON.stringify(json)
  const init: RequestInit & { duplex: 'half' } = {
    method,
    duplex: 'half',
    headers: {
      ...(basin !== null && path.includes('/streams') && { 'svc-basin': basin }),
      ...(json !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
  }
  if (sent !== undefined) init.body = sent as BodyInit
  if (signal !== undefined) init.signal = signal
  return new Request(`${origin}${path}`, init)
}

/** Like the service's own, a body of JSON error information. */
export async function errorOf(
  response: Response,
): Promise<{ status: number; code: string; message: string }> {
  const body = (await response.json()) as { code: string; message: string }
  return { status: response.status, ...body }
}

/** How many records a stream has ever taken. */
export async function tailOf(service: Service, stream = 's'): Promise<number> {
  return (await service.hw.basin(BASIN, { autoCreate: false }).stream(stream).checkTail()).seqNum
}

interface SseEvent {
  readonly event: string | undefined
  readonly id: string | undefined
  readonly data: string
}

export function parseSse(text: string): SseEvent[] {
  return text
    .split('\n\n')
    .filter((block) => block !== '')
    .map((block) => {
      // Only \n ends a line here: to a regular expression U+2028 does as well.
      const lines = block.split('\n')
      const field = (name: string) =>
        lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2)
      return { event: field('event'), id: field('id'), data: field('data') ?? '' }
    })
}

export async function framesOf(body: Uint8Array): Promise<Frame[]> {
  const decoder = new FrameDecoder()
  const frames = [...decoder.decode(body)]
  decoder.end()
  return frames
}

/** The status and the error of a terminal frame. */
export function errorInFrame(frame: Frame | undefined): unknown {
  if (frame?.kind !== 'terminal') return frame
  return { status: frame.status, ...(JSON.parse(frame.body) as object) }
}

export async function readBatchOf(frame: Frame) {
  if (frame.kind !== 'message') throw new Error(`a terminal frame: ${frame.body}`)
  const { records, tail } = fromBinary(ReadBatchSchema, await messageOf(frame))
  return {
    seqNums: records.map(({ seqNum }) => Number(seqNum)),
    bodies: records.map(({ body }) => new TextDecoder().decode(body)),
    tail: tail && { seqNum: Number(tail.seqNum), timestamp: Number(tail.timestamp) },
  }
}

export async function ackOf(frame: Frame) {
  if (frame.kind !== 'message') throw new Error(`a terminal frame: ${frame.body}`)
  const ack = fromBinary(AppendAckSchema, await messageOf(frame))
  return { start: Number(ack.start?.seqNum), end: Number(ack.end?.seqNum), tail: Number(ack.tail?.seqNum) }
}

export async function bytesOf(response: Response): Promise<Uint8Array> {
  return new Uint8Array(await response.arrayBuffer())
}

/** Collects a body as it comes. */
export class BodyReader {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>
  #received: Uint8Array[] = []
  /** Resolves when the body has ended, rejects when it broke off. */
  readonly ended: Promise<void>

  constructor(response: Response) {
    this.#reader = response.body!.getReader()
    this.ended = this.#run()
    this.ended.catch(() => {})
  }

  get bytes(): Uint8Array {
    return Buffer.concat(this.#received)
  }

  get text(): string {
    return new TextDecoder().decode(this.bytes)
  }

  cancel(): Promise<void> {
    return this.#reader.cancel()
  }

  async #run(): Promise<void> {
    for (;;) {
      const { done, value } = await this.#reader.read()
      if (done) return
      this.#received.push(value)
    }
  }
}

/** A request body that is written bit by bit. */
export class Upload {
  #controller!: ReadableStreamDefaultController<Uint8Array>
  isCancelled = false
  readonly body = new ReadableStream<Uint8Array>({
    start: (controller) => {
      this.#controller = controller
    },
    cancel: () => {
      this.isCancelled = true
    },
  })

  write(...chunks: readonly Uint8Array[]): void {
    for (const chunk of chunks) this.#controller.enqueue(chunk)
  }

  end(): void {
    this.#controller.close()
  }

  fail(error: Error): void {
    this.#controller.error(error)
  }
}
