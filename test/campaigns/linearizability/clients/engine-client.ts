import { fenceRecord, HeadwaterError, type RecordInput, type Stream } from '../../../../src/index.ts'
import type { AppendConditions } from '../../../../src/model/append-input.ts'
import {
  type AppendOutcome,
  FAILED,
  NOT_MADE,
  type ReadOutcome,
  type TailOutcome,
  UNKNOWN,
} from '../operations.ts'
import { type AppendCall, contentsOf, type StreamClient } from '../stream-client.ts'
import { recordHash } from '../stream-hash.ts'

/** How a client reads a whole stream: in pages to the end, or by a session until it reports the tail. */
export type ReadMethod = 'pages' | 'session'

/** A client in the process of the engine. Its calls are independent of each other. */
export class EngineClient implements StreamClient {
  readonly #stream: Stream
  readonly #reading: ReadMethod

  constructor(stream: Stream, reading: ReadMethod) {
    this.#stream = stream
    this.#reading = reading
  }

  async append(call: AppendCall): Promise<AppendOutcome> {
    try {
      const { start, end, tail } = await this.#stream.append(inputsOf(call), conditionsOf(call))
      return { kind: 'appended', start: start.seqNum, end: end.seqNum, tail: tail.seqNum }
    } catch (error) {
      return failedAppend(error)
    }
  }

  async read(): Promise<ReadOutcome> {
    try {
      return await (this.#reading === 'pages' ? readPages(this.#stream) : readSession(this.#stream))
    } catch (error) {
      if (!HeadwaterError.is(error)) throw error
      return FAILED
    }
  }

  async checkTail(): Promise<TailOutcome> {
    try {
      return { kind: 'tail', tail: (await this.#stream.checkTail()).seqNum }
    } catch (error) {
      if (!HeadwaterError.is(error)) throw error
      return FAILED
    }
  }
}

export function inputsOf({ bodies, setFencingToken }: AppendCall): RecordInput[] {
  return setFencingToken === undefined ? [...bodies] : [fenceRecord(setFencingToken), ...bodies]
}

export function conditionsOf({ matchSeqNum, fencingToken }: AppendCall): AppendConditions {
  return { matchSeqNum, fencingToken }
}

/** Rethrows errors that must not occur: those that are not from headwater, and those of malformed calls. */
export function failedAppend(error: unknown): AppendOutcome {
  if (!HeadwaterError.is(error) || error.code === 'invalid') throw error
  if (error.code === 'seq_num_mismatch') return { kind: 'refused', seqNum: error.seqNum! }
  if (error.code === 'fencing_token_mismatch') return { kind: 'refused', fencingToken: error.fencingToken! }
  return error.mayHaveEffects ? UNKNOWN : NOT_MADE
}

async function readPages(stream: Stream): Promise<ReadOutcome> {
  const hashes: bigint[] = []
  for (;;) {
    const { records, tail } = await stream.readBatch({ seqNum: hashes.length }, { as: 'bytes' })
    for (const { body } of records) hashes.push(recordHash(body))
    if (records.length > 0) continue
    if (tail === undefined) throw new Error('a page without records, and no word of the tail')
    return contentsOf(hashes, tail.seqNum)
  }
}

/** A heartbeat means that everything before the tail has been delivered. */
async function readSession(stream: Stream): Promise<ReadOutcome> {
  const hashes: bigint[] = []
  for await (const event of stream.follow({ seqNum: 0 }, { as: 'bytes', create: true }).events()) {
    if (event.kind === 'heartbeat') return contentsOf(hashes, event.tail.seqNum)
    for (const { body } of event.batch.records) hashes.push(recordHash(body))
  }
  throw new Error('a session that goes on for ever has ended')
}
