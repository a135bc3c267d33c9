import type { AppendBatch } from '../../src/model/append-input.ts'
import { isStreamMissing } from '../../src/model/errors.ts'
import type { AppendAck } from '../../src/model/info.ts'
import { APPEND_HEADER, UNMATCHED_SEQ_NUM } from '../../src/wire/headers.ts'
import { Malformed } from '../../src/wire/json.ts'
import { decodeAppendAck, encodeAppendInput } from '../../src/wire/protobuf.ts'
import type { ClientCore } from './core.ts'
import { createMissingStream } from './creation.ts'
import { decoded } from './errors.ts'
import { afterRepetition, appendHeaders, assertKnown, extensionError } from './extended-append.ts'
import { resolveRepeated } from './repeated-append.ts'
import type { RemoteTarget } from './stream-target.ts'

/** How often the stream is created, should others keep deleting it. */
const CREATIONS_MAX = 3

/** The values that the ack of a batch must agree with. */
export interface SentBatch {
  /** The number of records. */
  readonly count: number
  readonly matchSeqNum: number | undefined
}

/** Appends single batches by unary requests. */
export class AppendRequests {
  readonly #core: ClientCore
  readonly #target: RemoteTarget

  constructor(core: ClientCore, target: RemoteTarget) {
    this.#core = core
    this.#target = target
  }

  /**
   * Appends a batch, and creates the stream if it is missing and may be created.
   *
   * @param body The batch as {@link encode} returned it.
   */
  append(batch: AppendBatch, body?: Uint8Array | undefined): Promise<AppendAck> {
    return this.creatingStream(() => this.#append(batch, false, body))
  }

  /** Appends a batch that an earlier attempt may have stored, and that has `matchSeqNum`. */
  repeat(batch: AppendBatch): Promise<AppendAck> {
    return this.#append(batch, true)
  }

  /**
   * Encodes a batch, whose records are not used any more then. Returns undefined if they are: those of a
   * conditional batch may be compared with what is stored.
   */
  encode(batch: AppendBatch): Uint8Array | undefined {
    const { matchSeqNum, producer } = batch
    if (matchSeqNum !== undefined && producer === undefined) return undefined
    return bodyOf(batch)
  }

  /** Makes a call, which has no effect on a missing stream, and again once the stream was created. */
  async creatingStream<Result>(call: () => Promise<Result>): Promise<Result> {
    for (let creations = 0; ; creations++) {
      try {
        return await call()
      } catch (error) {
        const mayCreate = this.#target.autoCreate && creations < CREATIONS_MAX
        if (!isStreamMissing(error) || error.mayHaveEffects || !mayCreate) throw error
        await createMissingStream(this.#core.sender, this.#target, error)
      }
    }
  }

  async #append(batch: AppendBatch, mayBeStored: boolean, body?: Uint8Array | undefined): Promise<AppendAck> {
    const { matchSeqNum, producer } = batch
    const isWithHeader = isExtended(batch)
    // The server finds out whether the batch is stored already, or rejects what it does not understand.
    const isIdempotent = producer !== undefined
    const count = batch.records.length
    const outcome = await this.#core.sender.attempt({
      method: 'POST',
      path: `${this.#target.path}/records`,
      basin: this.#target.basin,
      vendor: this.#target.recordHeaders,
      headers: isWithHeader ? appendHeaders(batch) : undefined,
      accept: 'application/protobuf',
      contentType: 'application/protobuf',
      body: body ?? bodyOf(batch),
      isAppend: true,
      // A second copy of the batch cannot be stored: its first record would get another sequence number.
      isRepeatable: matchSeqNum !== undefined || isIdempotent,
    })
    if (outcome.kind === 'reply') {
      const result = outcome.headers.get(APPEND_HEADER)
      if (isWithHeader) assertKnown(result)
      const received = decoded(true, () => decodeAppendAck(outcome.body))
      const ack: AppendAck = result === 'duplicate' ? { ...received, duplicate: true } : received
      // A duplicate is where the first one was stored, whatever its records and the condition are.
      const first = { count: received.end.seqNum - received.start.seqNum, matchSeqNum: undefined }
      const sent = ack.duplicate ? first : { count, matchSeqNum }
      return decoded(true, () => assertAck(ack, sent))
    }
    const { isRepeated } = outcome
    const error = isWithHeader ? extensionError(outcome.error, batch, isRepeated) : outcome.error
    if (isIdempotent) throw isRepeated ? afterRepetition(error) : error
    const mayBeRepeated = (isRepeated || mayBeStored) && matchSeqNum !== undefined
    if (!mayBeRepeated) throw error
    return resolveRepeated(this.#core, this.#target, { ...batch, matchSeqNum }, error)
  }
}

/** Whether the request of a batch has a header with its conditions. */
function isExtended({ producer, streamSeq }: AppendBatch): boolean {
  return producer !== undefined || streamSeq !== undefined
}

function bodyOf(batch: AppendBatch): Uint8Array {
  const { fencingToken } = batch
  const conditions = isExtended(batch) ? { fencingToken, matchSeqNum: UNMATCHED_SEQ_NUM } : batch
  return encodeAppendInput(batch, conditions)
}

/** Throws {@link Malformed} unless the ack is one of this batch. */
export function assertAck(ack: AppendAck, { count, matchSeqNum }: SentBatch): AppendAck {
  const { start, end, tail } = ack
  const isOfBatch =
    end.seqNum - start.seqNum === count &&
    (matchSeqNum === undefined || start.seqNum === matchSeqNum) &&
    tail.seqNum >= end.seqNum &&
    end.timestamp >= start.timestamp
  if (!isOfBatch) throw new Malformed('the acknowledgement is of another append')
  return ack
}
