import type { AppendBatch } from '../../src/model/append-input.ts'
import { equalBytes } from '../../src/model/bytes.ts'
import type { HeadwaterError } from '../../src/model/errors.ts'
import type { AppendAck } from '../../src/model/info.ts'
import type { AppendRecord, SequencedRecord } from '../../src/model/record.ts'
import { decodeAppendAck, decodeReadBatch } from '../../src/wire/decode-records.ts'
import { encodeAppendInput } from '../../src/wire/encode-append.ts'
import { MalformedResponse } from '../../src/wire/response-json.ts'
import type { Call } from './call.ts'
import type { ClientCore } from './core.ts'
import { decoded, isMissing, withEffects } from './errors.ts'
import { loadControl } from './on-demand.ts'
import type { StreamTarget } from './stream-target.ts'
import { tailOf } from './tail.ts'

/** How often the stream is created, should others keep deleting it. */
const CREATIONS_MAX = 3

/** Appends single batches by unary requests. */
export class AppendRequests {
  readonly #core: ClientCore
  readonly #target: StreamTarget

  constructor(core: ClientCore, target: StreamTarget) {
    this.#core = core
    this.#target = target
  }

  /**
   * Appends a batch, and creates the stream if it is missing and may be created.
   *
   * @param mayBeStored Whether an earlier attempt may have stored the batch, which has `matchSeqNum` then.
   */
  async append(batch: AppendBatch, mayBeStored = false): Promise<AppendAck> {
    if (mayBeStored) return this.#append(batch, true)
    return this.creatingStream(() => this.#append(batch, false))
  }

  /** Makes a call, which has no effect on a missing stream, and again once the stream was created. */
  async creatingStream<Result>(call: () => Promise<Result>): Promise<Result> {
    const { sender } = this.#core
    for (let creations = 0; ; creations++) {
      try {
        return await call()
      } catch (error) {
        const mayCreate = this.#target.autoCreate && creations < CREATIONS_MAX
        if (!isMissing(error) || error.mayHaveEffects || !mayCreate) throw error
        await this.#target.create(error, async (name) => {
          const { createBasin } = await loadControl()
          return createBasin(sender, name)
        })
      }
    }
  }

  async #append(batch: AppendBatch, mayBeStored: boolean): Promise<AppendAck> {
    const { matchSeqNum } = batch
    const outcome = await this.#core.sender.attempt({
      method: 'POST',
      path: `${this.#target.path}/records`,
      basin: this.#target.basin.name,
      vendor: this.#target.recordHeaders,
      accept: 'application/protobuf',
      contentType: 'application/protobuf',
      body: encodeAppendInput(batch, batch),
      // A second copy of the batch cannot be stored: its first record would get another sequence number.
      isRepeatable: matchSeqNum !== undefined,
    })
    if (outcome.kind === 'reply') {
      return decoded(true, () => assertAck(decodeAppendAck(outcome.body), batch))
    }
    const { error, isRepeated } = outcome
    return this.#resolve(error, isRepeated || mayBeStored, batch)
  }

  /**
   * Finds out whether an earlier attempt stored the batch. Otherwise rejects with the error of the last one.
   */
  async #resolve(error: HeadwaterError, mayBeStored: boolean, batch: AppendBatch): Promise<AppendAck> {
    const { matchSeqNum } = batch
    if (!mayBeStored || matchSeqNum === undefined) throw error
    const unknown = withEffects(error, true)
    if (error.code !== 'seq_num_mismatch' && error.code !== 'fencing_token_mismatch') throw unknown
    // Nothing has got the sequence number of the batch, and a copy of the batch on its way fails as this one.
    if (error.seqNum !== undefined && error.seqNum <= matchSeqNum) throw error
    const stored = await this.#storedAt(matchSeqNum, batch.records.length).catch(() => undefined)
    const last = stored?.at(-1)
    if (stored === undefined || last === undefined) throw unknown
    if (!isSame(batch.records, stored)) throw error
    const end = { seqNum: last.seqNum + 1, timestamp: last.timestamp }
    const { seqNum, timestamp } = stored[0]!
    const tail = await tailOf(this.#core, this.#target).catch(() => end)
    return { start: { seqNum, timestamp }, end, tail: tail.seqNum < end.seqNum ? end : tail }
  }

  /** Resolves to the records from a sequence number on; to undefined unless all of them are there. */
  async #storedAt(seqNum: number, count: number): Promise<readonly SequencedRecord[] | undefined> {
    const call: Call = {
      method: 'GET',
      path: `${this.#target.path}/records?seq_num=${seqNum}&count=${count}`,
      basin: this.#target.basin.name,
      vendor: this.#target.recordHeaders,
      accept: 'application/protobuf',
      isRepeatable: true,
    }
    const { body } = await this.#core.sender.send(call)
    const { records } = decoded(false, () => decodeReadBatch(body))
    const isWhole = records.length === count && records.every((record, i) => record.seqNum === seqNum + i)
    return isWhole ? records : undefined
  }
}

/** Throws {@link MalformedResponse} unless the ack is one of this batch. */
export function assertAck(
  ack: AppendAck,
  { records, matchSeqNum }: Pick<AppendBatch, 'records' | 'matchSeqNum'>,
): AppendAck {
  const { start, end, tail } = ack
  const isOfBatch =
    end.seqNum - start.seqNum === records.length &&
    (matchSeqNum === undefined || start.seqNum === matchSeqNum) &&
    tail.seqNum >= end.seqNum &&
    end.timestamp >= start.timestamp
  if (!isOfBatch) throw new MalformedResponse('the acknowledgement is of another append')
  return ack
}

function isSame(sent: readonly AppendRecord[], stored: readonly SequencedRecord[]): boolean {
  return sent.every(({ headers, body }, i) => {
    const record = stored[i]!
    return (
      equalBytes(body, record.body) &&
      headers.length === record.headers.length &&
      headers.every(([name, value], j) => {
        const [storedName, storedValue] = record.headers[j]!
        return equalBytes(name, storedName) && equalBytes(value, storedValue)
      })
    )
  })
}
