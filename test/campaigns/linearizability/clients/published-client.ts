import {
  AppendInput,
  AppendRecord,
  FencingTokenMismatchError,
  S2Error,
  type S2Stream,
  SeqNumMismatchError,
} from '@s2-dev/streamstore'
import { type AppendOutcome, FAILED, type ReadOutcome, type TailOutcome } from '../operations.ts'
import { type AppendCall, contentsOf, hashOfText, type StreamClient } from '../stream-client.ts'
import { outcomeOfCode } from './http-client.ts'
import { PipelinedAppends } from './pipelined-appends.ts'

/** Clients that share an append session of the published client and read by its sessions. */
export class PublishedClient implements StreamClient {
  readonly #stream: S2Stream
  readonly #appends: PipelinedAppends

  constructor(stream: S2Stream) {
    this.#stream = stream
    this.#appends = new PipelinedAppends(async () => {
      const session = await stream.appendSession()
      return {
        submit: async (call) => {
          const ticket = await session.submit(inputOf(call))
          return {
            ack: async () => {
              const { start, end, tail } = await ticket.ack()
              return { start: start.seqNum, end: end.seqNum, tail: tail.seqNum }
            },
          }
        },
        close: () => session.close(),
      }
    }, failedAppend)
  }

  append(call: AppendCall): Promise<AppendOutcome> {
    return this.#appends.append(call)
  }

  async read(): Promise<ReadOutcome> {
    try {
      return await readToTail(this.#stream)
    } catch (error) {
      if (!(error instanceof S2Error)) throw error
      return FAILED
    }
  }

  async checkTail(): Promise<TailOutcome> {
    try {
      return { kind: 'tail', tail: (await this.#stream.checkTail()).tail.seqNum }
    } catch (error) {
      if (!(error instanceof S2Error)) throw error
      return FAILED
    }
  }

  async close(): Promise<void> {
    await this.#appends.close()
    await this.#stream.close()
  }
}

function inputOf({ bodies, setFencingToken, ...conditions }: AppendCall): AppendInput {
  const fence = setFencingToken === undefined ? [] : [AppendRecord.fence(setFencingToken)]
  return AppendInput.create([...fence, ...bodies.map((body) => AppendRecord.string({ body }))], conditions)
}

function failedAppend(error: unknown): AppendOutcome {
  if (error instanceof SeqNumMismatchError) return { kind: 'refused', seqNum: error.expectedSeqNum }
  if (error instanceof FencingTokenMismatchError) {
    return { kind: 'refused', fencingToken: error.expectedFencingToken }
  }
  if (!(error instanceof S2Error)) throw error
  return outcomeOfCode(error.origin === 'server' ? error.code : undefined)
}

/**
 * The client reports when it has delivered everything before the tail. A session that ends earlier was cut.
 */
async function readToTail(stream: S2Stream): Promise<ReadOutcome> {
  const session = await stream.readSession({ start: { from: { seqNum: 0 } } })
  const reader = session.getReader()
  const hashes: bigint[] = []
  const caughtUp = session.caughtUp()
  try {
    for (;;) {
      const next = await Promise.race([reader.read(), caughtUp])
      if ('seqNum' in next) return contentsOf(hashes, next.seqNum)
      if (next.done) return FAILED
      hashes.push(hashOfText(next.value.body))
    }
  } finally {
    await reader.cancel().catch(() => {})
  }
}
