import type { AppendBatch } from '../../src/model/append-input.ts'
import { equalBytes } from '../../src/model/bytes.ts'
import { HeadwaterError } from '../../src/model/errors.ts'
import type { AppendAck } from '../../src/model/info.ts'
import { type AppendRecord, equalHeaders, type SequencedRecord } from '../../src/model/record.ts'
import { APPEND_HEADER, encodeAppendHeader, UNMATCHED_SEQ_NUM } from '../../src/wire/headers.ts'
import { Malformed } from '../../src/wire/json.ts'
import { decodeAppendAck, decodeReadBatch, encodeAppendInput } from '../../src/wire/protobuf.ts'
import type { Reply } from './call.ts'
import { createIfMissing } from './creation.ts'
import { decoded, Failure, withEffects } from './errors.ts'
import { tailOf } from './read.ts'
import type { Sender } from './sender.ts'
import type { RemoteTarget } from './stream-target.ts'

/** Appends a batch by a request, and creates the stream if it is missing and may be created. */
export function appendByRequest(
  sender: Sender,
  target: RemoteTarget,
  batch: AppendBatch,
): Promise<AppendAck> {
  return createIfMissing(sender, target, target.autoCreate, () => appendOnce(sender, target, batch, false))
}

/**
 * Appends a batch by a request.
 *
 * @param mayBeStored Whether an earlier attempt may have stored it, which had `matchSeqNum`.
 */
export async function appendOnce(
  sender: Sender,
  target: RemoteTarget,
  batch: AppendBatch,
  mayBeStored: boolean,
): Promise<AppendAck> {
  // The header has the conditions that only servers of headwater know, and the body one that never holds:
  // a server that ignores the header stores nothing.
  const header = encodeAppendHeader(batch)
  const { fencingToken } = batch
  const conditions = header === undefined ? batch : { fencingToken, matchSeqNum: UNMATCHED_SEQ_NUM }
  try {
    const reply = await sender.attempt({
      method: 'POST',
      path: `${target.path}/records`,
      ...target.recordsAddress,
      headers: header === undefined ? undefined : { [APPEND_HEADER]: header },
      accept: 'application/protobuf',
      contentType: 'application/protobuf',
      body: encodeAppendInput(batch, conditions),
      isAppend: true,
      isRepeatable: safeguardOf(batch) !== undefined,
    })
    return decoded(true, () => ackOf(reply, batch, header !== undefined))
  } catch (failure) {
    if (!(failure instanceof Failure)) throw failure
    const isRepeated = failure.isRepeated || mayBeStored
    const error = header === undefined ? failure.error : extensionError(failure.error, batch, isRepeated)
    if (!isRepeated) throw error
    const verdict = verdictOn(batch, error)
    const stored = verdict === 'look' ? await storedAck(sender, target, batch) : undefined
    if (stored === 'others') throw error
    if (stored !== undefined) return stored
    throw withEffects(error, verdict !== 'rejected')
  }
}

function ackOf(reply: Reply, batch: AppendBatch, isExtended: boolean): AppendAck {
  const result = reply.header(APPEND_HEADER)
  if (isExtended && result === undefined) throw unsupported(true)
  const ack = decodeAppendAck(reply.body)
  // A duplicate is where the first one was stored, whatever its records and the condition are.
  if (result === 'duplicate') return { ...assertAck(ack), duplicate: true }
  return assertAck(ack, { count: batch.records.length, matchSeqNum: batch.matchSeqNum })
}

/** Tells the ack of a batch from others. */
export interface ExpectedAck {
  /** The number of records. */
  readonly count: number
  readonly matchSeqNum: number | undefined
}

/** Throws {@link Malformed} unless the ack is one of this batch. */
export function assertAck(ack: AppendAck, batch?: ExpectedAck): AppendAck {
  const { start, end, tail } = ack
  const isOfBatch =
    (batch === undefined || end.seqNum - start.seqNum === batch.count) &&
    (batch?.matchSeqNum === undefined || start.seqNum === batch.matchSeqNum) &&
    tail.seqNum >= end.seqNum &&
    end.timestamp >= start.timestamp
  if (!isOfBatch) throw new Malformed('the acknowledgement is of another append')
  return ack
}

/** Throws `unsupported` for a batch that only a request of its own can carry. */
export function assertPlain({ producer, streamSeq }: AppendBatch): void {
  if (producer === undefined && streamSeq === undefined) return
  const message = 'sessions over HTTP do not support `producer` and `streamSeq`; use `stream.append`'
  throw new HeadwaterError('unsupported', message, { field: 'producer', mayHaveEffects: false })
}

/** A batch of a session that waits for its acknowledgement. */
export interface PendingBatch {
  readonly batch: AppendBatch
  readonly acked: (ack: AppendAck) => void
  readonly failed: (error: unknown) => void
}

/** The appends of one session: once one has failed, those behind it are discarded. */
export class SessionAppends {
  failed = false
  /** Why the first of them failed. */
  failure: unknown

  fail(error: unknown): void {
    if (!this.failed) this.failure = error
    this.failed = true
  }
}

/**
 * Returns the error of a rejected batch with a producer or a `streamSeq`. A server that ignores them says
 * that the tail is not the one that the body requires, which is none.
 */
function extensionError(
  error: HeadwaterError,
  { matchSeqNum }: AppendBatch,
  isRepeated: boolean,
): HeadwaterError {
  const { code, seqNum } = error
  const isIgnored = code === 'seq_num_mismatch' && (matchSeqNum === undefined || seqNum === matchSeqNum)
  return isIgnored ? unsupported(isRepeated) : error
}

function unsupported(mayHaveEffects: boolean): HeadwaterError {
  const message = 'the server ignores `producer` and `streamSeq`'
  return new HeadwaterError('unsupported', message, { field: 'producer', mayHaveEffects })
}

/**
 * Reads what is stored at the place of a batch with `matchSeqNum`. Resolves to the ack of the batch, to
 * `others` if other records are there, and to undefined if not all of them can be read.
 */
async function storedAck(
  sender: Sender,
  target: RemoteTarget,
  { records, matchSeqNum }: AppendBatch,
): Promise<AppendAck | 'others' | undefined> {
  const reply = await sender
    .send({
      method: 'GET',
      path: `${target.path}/records?seq_num=${matchSeqNum}&count=${records.length}`,
      ...target.recordsAddress,
      accept: 'application/protobuf',
      isRepeatable: true,
    })
    .then(({ body }) => decodeReadBatch(body))
    .catch(() => undefined)
  const stored = reply?.records ?? []
  const [first, last] = [stored[0], stored.at(-1)]
  const isWhole = stored.length === records.length && stored.every(isAt(matchSeqNum!))
  if (first === undefined || last === undefined || !isWhole) return undefined
  if (!records.every((record, i) => isSame(record, stored[i]!))) return 'others'
  const start = { seqNum: first.seqNum, timestamp: first.timestamp }
  const end = { seqNum: last.seqNum + 1, timestamp: last.timestamp }
  const tail = await tailOf(sender, target).catch(() => end)
  return { start, end, tail: tail.seqNum < end.seqNum ? end : tail }
}

const isAt = (start: number) => (record: SequencedRecord, index: number) => record.seqNum === start + index

function isSame(sent: AppendRecord, stored: SequencedRecord): boolean {
  return equalBytes(sent.body, stored.body) && equalHeaders(sent.headers, stored.headers)
}

/**
 * What makes it safe to send a batch again that an earlier attempt may have stored: its number among those of
 * its producer, by which the server discards a duplicate; or its condition, which a second copy would not
 * meet, because its first record would get another sequence number. Undefined if nothing does.
 */
export type Safeguard = 'producer' | 'condition' | undefined

/** Returns the safeguard of a batch. */
export function safeguardOf({
  producer,
  matchSeqNum,
}: Pick<AppendBatch, 'producer' | 'matchSeqNum'>): Safeguard {
  if (producer !== undefined) return 'producer'
  return matchSeqNum === undefined ? undefined : 'condition'
}

/**
 * What is known of a batch that an earlier attempt may have stored, when the last attempt fails:
 *
 * - `rejected`: no attempt has stored it
 * - `unknown`: it may be stored
 * - `look`: the records at the place of the batch tell whether it is stored
 */
export type Verdict = 'rejected' | 'unknown' | 'look'

/** Returns the verdict on a batch that was sent more than once, from the error of the last attempt. */
export function verdictOn(
  batch: Pick<AppendBatch, 'producer' | 'matchSeqNum'>,
  { code, status, retryable, mayHaveEffects, seqNum }: HeadwaterError,
): Verdict {
  switch (safeguardOf(batch)) {
    case undefined:
      return mayHaveEffects ? 'unknown' : 'rejected'
    case 'producer':
      // The server checks the request and its token (400, 401 and 403), then whether the batch is stored,
      // then everything else. 403 is the status of `producer_fenced` too: another epoch hides the batches
      // before.
      return mayHaveEffects || retryable || status < 404 ? 'unknown' : 'rejected'
    case 'condition':
      if (code !== 'seq_num_mismatch' && code !== 'fencing_token_mismatch') return 'unknown'
      // Nothing has got the sequence number of the batch, and a copy on its way fails as this one.
      return seqNum !== undefined && seqNum <= batch.matchSeqNum! ? 'rejected' : 'look'
  }
}
