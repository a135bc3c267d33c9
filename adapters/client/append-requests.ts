import type { AppendBatch } from '../../src/model/append-input.ts'
import type { HeadwaterError } from '../../src/model/errors.ts'
import type { AppendAck } from '../../src/model/info.ts'
import { APPEND_HEADER } from '../../src/wire/append-header.ts'
import { decodeAppendAck } from '../../src/wire/decode-records.ts'
import { encodeAppendInput } from '../../src/wire/encode-append.ts'
import { MalformedResponse } from '../../src/wire/response-json.ts'
import type { ClientCore } from './core.ts'
import { decoded, isMissing, withEffects } from './errors.ts'
import { loadControl, loaded } from './on-demand.ts'
import type { StreamTarget } from './stream-target.ts'

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
    const { matchSeqNum, producer, streamSeq } = batch
    const isExtended = producer !== undefined || streamSeq !== undefined
    const extension = isExtended ? await loaded('producers', import('./extended-append.ts')) : undefined
    const headers = extension?.extensionHeaders(this.#core, batch)
    // The server finds out whether the batch is stored already.
    const isIdempotent = producer !== undefined && this.#core.knowsProducers === true
    const outcome = await this.#core.sender.attempt({
      method: 'POST',
      path: `${this.#target.path}/records`,
      basin: this.#target.basin.name,
      vendor: this.#target.recordHeaders,
      headers,
      accept: 'application/protobuf',
      contentType: 'application/protobuf',
      body: encodeAppendInput(batch, batch),
      // A second copy of the batch cannot be stored: its first record would get another sequence number.
      isRepeatable: matchSeqNum !== undefined || isIdempotent,
    })
    if (outcome.kind === 'reply') {
      const result = outcome.headers.get(APPEND_HEADER)
      extension?.assertKnown(this.#core, result)
      const received = decoded(true, () => decodeAppendAck(outcome.body))
      const ack: AppendAck = result === 'duplicate' ? { ...received, duplicate: true } : received
      // A duplicate is where the first one was stored, whatever the condition says.
      const expected = ack.duplicate ? { records: batch.records, matchSeqNum: undefined } : batch
      return decoded(true, () => assertAck(ack, expected))
    }
    const { error, isRepeated } = outcome
    if (isIdempotent) throw isRepeated ? extension!.afterRepetition(error) : error
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
    const loading = loaded('repeated appends', import('./repeated-append.ts'))
    const stored = await loading
      .then(({ storedAck }) => storedAck(this.#core, this.#target, batch))
      .catch(() => undefined)
    if (stored === undefined) throw unknown
    if (stored === 'others') throw error
    return stored
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
