import { fenceRecord, HeadwaterError, type RecordInput, type Stream } from '../../../src/index.ts'
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

/** How a client reads a whole stream: in pages until there is no more, or by a session until it tells the tail. */
export type WayOfReading = 'pages' | 'session'

/** A client in the process of the engine, of which each call is on its own. */
export class EngineClient implements StreamClient {
  readonly #stream: Stream
  readonly #reading: WayOfReading

  constructor(stream: Stream, reading: WayOfReading) {
    this.#stream = stream
    this.#reading = reading
  }

  async append(call: AppendCall): Promise<AppendOutcome> {
    try {
      const { start, end, tail } = await this.#stream.append(inputsOf(call), call)
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

/** Throws what is no error of headwater: it should not have happened. */
export function failedAppend(error: unknown): AppendOutcome {
  if (!HeadwaterError.is(error)) throw error
  if (error.code === 'seq_num_mismatch') return { kind: 'refused', seqNum: error.seqNum! }
  if (error.code === 'fencing_token_mismatch') return { kind: 'refused', fencingToken: error.fencingToken! }
  return error.mayHaveEffects ? UNKNOWN : NOT_MADE
}

async function readPages(stream: Stream): Promise<ReadOutcome> {
  const hashes: bigint[] = []
  for (;;) {
    try {
      const { records } = await stream.readBatch({ seqNum: hashes.length })
      if (records.length === 0) throw new Error('a page without records, and no word of the tail')
      for (const { body } of records) hashes.push(recordHash(body))
    } catch (error) {
      if (HeadwaterError.is(error) && error.tail !== undefined) return contentsOf(hashes, error.tail.seqNum)
      throw error
    }
  }
}

/** A heartbeat says that everything before the tail has been delivered. */
async function readSession(stream: Stream): Promise<ReadOutcome> {
  const hashes: bigint[] = []
  for await (const event of stream.read({ seqNum: 0 }).events()) {
    if (event.kind === 'heartbeat') return contentsOf(hashes, event.tail.seqNum)
    for (const { body } of event.batch.records) hashes.push(recordHash(body))
  }
  throw new Error('a session that goes on for ever has ended')
}
