import type { AppendBatch, ProducerBatch } from '../model/append-input.ts'
import { compareUtf8 } from '../model/bytes.ts'
import type { Cipher, StreamConfig } from '../model/config.ts'
import { HeadwaterError, invalid } from '../model/errors.ts'
import { INTEGER_MAX, PRODUCERS_MAX } from '../model/limits.ts'
import type { StreamPosition, StreamTail } from '../model/position.ts'
import type { Command, SequencedRecord } from '../model/record.ts'

/** The state of a stream that decides about appends. */
export interface StreamState {
  /** The position of the next record, and the timestamp of the last one. */
  readonly tail: StreamPosition
  /** Records below it are trimmed. */
  readonly trimPoint: number
  /** `''` when the stream is not fenced. */
  readonly fencingToken: string
  /** Absent while no append has set any of it. */
  readonly writeState?: WriteState | undefined
}

/**
 * The state left by appends that, besides the fencing token, decides about later appends. Absent members have
 * never been set: most streams have none. Persisted: keep stable.
 */
export interface WriteState {
  /** True once the stream is closed. */
  readonly closed?: true | undefined
  /** The producers in the order of their last appends, the latest last. At most `PRODUCERS_MAX`. */
  readonly producers?: readonly ProducerState[] | undefined
  /** That of the last append that had one. */
  readonly streamSeq?: string | undefined
}

/** The last batch of a producer. Persisted: keep stable. */
export interface ProducerState {
  readonly id: string
  /** The incarnation of the producer that appended last. */
  readonly epoch: number
  /** The number of the last batch. */
  readonly seq: number
  /** The time at which that batch was appended, in milliseconds. */
  readonly appendedAt: number
  /** The position of its first record. */
  readonly start: StreamPosition
  /** The sequence number after its last record, and the timestamp of that. */
  readonly end: StreamPosition
}

/**
 * Applies a command whose record has the sequence number `seqNum` (docs/protocol.md "Command records"). A
 * trim removes at most the records up to and including the command itself, and never moves the trim point
 * back.
 */
export function applyCommand(state: StreamState, command: Command, seqNum: number): StreamState {
  if (command.kind === 'fence') return { ...state, fencingToken: command.token }
  if (command.kind === 'close') return { ...state, writeState: { ...state.writeState, closed: true } }
  const trimPoint = Math.min(command.seqNum, seqNum + 1)
  return trimPoint > state.trimPoint ? { ...state, trimPoint } : state
}

/** A copy of the tail, for callers: they may write to it. */
export function streamTailOf({ tail, writeState }: Pick<StreamState, 'tail' | 'writeState'>): StreamTail {
  const { seqNum, timestamp } = tail
  return writeState?.closed ? { seqNum, timestamp, closed: true } : { seqNum, timestamp }
}

export interface Refused {
  readonly kind: 'refused'
  readonly error: HeadwaterError
}

/** A batch that is stored already, and where. */
export interface Duplicate {
  readonly kind: 'duplicate'
  readonly start: StreamPosition
  readonly end: StreamPosition
}

/** Decides about a batch that is stored already, or whose stream is closed; undefined for others. */
function storedOutcome(state: StreamState, batch: AppendBatch): Duplicate | Refused | undefined {
  const { producer } = batch
  const { tail, writeState } = state
  const known = producer && findProducer(writeState?.producers, producer.id)
  // This batch, or an earlier one of its epoch.
  if (producer !== undefined && known?.epoch === producer.epoch && producer.seq <= known.seq) {
    const { start, end } = known
    if (producer.seq === known.seq) return { kind: 'duplicate', start: { ...start }, end: { ...end } }
    return refuse(alreadyAppended(known))
  }
  if (!writeState?.closed) return undefined
  // Closing again has no effect, except that a producer learns that the batch is not its own.
  if (producer === undefined && onlyCloses(batch)) {
    const { seqNum, timestamp } = tail
    return { kind: 'duplicate', start: { seqNum: seqNum - 1, timestamp }, end: { seqNum, timestamp } }
  }
  const { seqNum } = tail
  return refuse(new HeadwaterError('stream_closed', `the stream was closed at ${seqNum}`, { seqNum }))
}

/** Returns the reason to reject a batch that is not stored, if there is one. */
function continuationRefusal(
  { writeState }: StreamState,
  { producer, streamSeq }: AppendBatch,
  now: number,
): HeadwaterError | undefined {
  const refusal = producer && producerRefusal(writeState?.producers, producer, now)
  if (refusal !== undefined) return refusal
  const last = writeState?.streamSeq
  if (streamSeq === undefined || last === undefined || compareUtf8(streamSeq, last) > 0) return undefined
  const message = 'the sequence in `streamSeq` must be greater than that of the last append that had one'
  return new HeadwaterError('stream_seq_not_increasing', message, { field: 'streamSeq', streamSeq: last })
}

function onlyCloses(batch: AppendBatch): boolean {
  return batch.records.length === 1 && batch.records[0]!.command?.kind === 'close'
}

/** How long a producer is certainly known after its last append, in milliseconds: 7 days. */
const PRODUCER_KEPT_MS = 604_800_000

type Producers = readonly ProducerState[] | undefined

/** Returns what is known of a producer. The search begins with the latest ones. */
function findProducer(producers: Producers, id: string): ProducerState | undefined {
  return producers?.findLast((producer) => producer.id === id)
}

/** Returns the error of a batch that was appended before the producer's last one. */
function alreadyAppended({ seq: lastSeq }: ProducerState): HeadwaterError {
  return new HeadwaterError('already_appended', `the producer has appended its batches up to ${lastSeq}`, {
    field: 'producer',
    lastSeq,
  })
}

/** Returns the reason to reject a batch that its producer has not appended before, if there is one. */
function producerRefusal(
  producers: Producers,
  { id, epoch, seq }: ProducerBatch,
  now: number,
): HeadwaterError | undefined {
  const known = findProducer(producers, id)
  if (known === undefined) {
    if (seq !== 0) return gap(0, seq)
    const oldest = producers !== undefined && producers.length >= PRODUCERS_MAX ? producers[0] : undefined
    return oldest !== undefined && now - oldest.appendedAt < PRODUCER_KEPT_MS ? tooManyProducers() : undefined
  }
  if (epoch < known.epoch) {
    const message = `the producer has epoch ${known.epoch}, not ${epoch}`
    return new HeadwaterError('producer_fenced', message, { field: 'producer', producerEpoch: known.epoch })
  }
  if (epoch === known.epoch) return seq === known.seq + 1 ? undefined : gap(known.seq + 1, seq)
  return seq === 0 ? undefined : invalid('`producer`: a new epoch must begin with batch 0', 'producer')
}

/**
 * The state after a batch: its producer becomes the latest one. A new producer may replace the one that has
 * not appended for the longest time.
 */
export function withAppend(
  state: WriteState | undefined,
  { producer, streamSeq }: Pick<AppendBatch, 'producer' | 'streamSeq'>,
  { start, end }: { readonly start: StreamPosition; readonly end: StreamPosition },
  appendedAt: number,
): WriteState | undefined {
  if (producer === undefined && streamSeq === undefined) return state
  const { producers = [] } = state ?? {}
  if (producer === undefined) return { ...state, streamSeq }
  const { id, epoch, seq } = producer
  const others = producers.filter((one) => one.id !== id).slice(-(PRODUCERS_MAX - 1))
  return {
    ...state,
    // Copies: callers receive `start` and `end`.
    producers: [...others, { id, epoch, seq, appendedAt, start: { ...start }, end: { ...end } }],
    ...(streamSeq !== undefined && { streamSeq }),
  }
}

function gap(expectedSeq: number, receivedSeq: number): HeadwaterError {
  const message = `the next batch of the producer is ${expectedSeq}, not ${receivedSeq}`
  return new HeadwaterError('producer_gap', message, { field: 'producer', expectedSeq, receivedSeq })
}

function tooManyProducers(): HeadwaterError {
  const producers = `${PRODUCERS_MAX.toLocaleString('en-US')} producers that have appended within 7 days`
  const message = `the stream knows ${producers}; use fewer producer ids`
  return new HeadwaterError('too_many_producers', message, { field: 'producer' })
}

export interface Sequenced {
  readonly kind: 'sequenced'
  readonly records: readonly SequencedRecord[]
  readonly next: StreamState
  readonly start: StreamPosition
  readonly end: StreamPosition
}

/**
 * The number of records that may be encrypted with random nonces under one AES-256-GCM key (docs/protocol.md
 * "Limit of AES-256-GCM").
 */
const AES_GCM_SEQ_NUM_MAX = 0xff_ff_ff_ff

/**
 * Assigns sequence numbers and timestamps to a batch, or rejects it as a whole, or finds it stored already.
 * Checks the conditions, then each record (docs/protocol.md "Append conditions"). Commands in the batch take
 * effect after the checks. `now` is in milliseconds.
 */
export function sequence(
  state: StreamState,
  batch: AppendBatch,
  config: Pick<StreamConfig, 'timestamping'> & { readonly cipher: Cipher | null },
  now: number,
): Sequenced | Duplicate | Refused {
  const stored = storedOutcome(state, batch)
  if (stored !== undefined) return stored
  const refusal = conditionRefusal(state, batch) ?? continuationRefusal(state, batch, now)
  if (refusal !== undefined) return refuse(refusal)

  const records: SequencedRecord[] = []
  let next = state
  let seqNum = state.tail.seqNum
  let timestamp = state.tail.timestamp
  const recordMax = config.cipher === 'aes-256-gcm' ? AES_GCM_SEQ_NUM_MAX : INTEGER_MAX - 1
  for (const record of batch.records) {
    const seqNumMax = record.command ? INTEGER_MAX - 1 : recordMax
    if (seqNum > seqNumMax) {
      return refuse(invalid(`max assignable sequence number is ${seqNumMax}; attempted ${seqNum}`, 'records'))
    }
    const assigned = assignTimestamp(record.timestamp, timestamp, config.timestamping, now)
    if (assigned === undefined) {
      return refuse(invalid('record timestamp was required but was missing', 'timestamp'))
    }
    timestamp = assigned
    const sequenced = { seqNum, timestamp, headers: record.headers, body: record.body }
    records.push(record.command ? { ...sequenced, command: record.command } : sequenced)
    if (record.command) next = applyCommand(next, record.command, seqNum)
    seqNum++
  }
  const start = { seqNum: state.tail.seqNum, timestamp: records[0]!.timestamp }
  const end = { seqNum, timestamp }
  const writeState = withAppend(next.writeState, batch, { start, end }, now)
  return {
    kind: 'sequenced',
    records,
    next: {
      // Not `end`, which the caller receives.
      tail: { seqNum, timestamp },
      trimPoint: next.trimPoint,
      fencingToken: next.fencingToken,
      writeState,
    },
    start,
    end,
  }
}

/** Returns the condition that does not hold, as an error. */
function conditionRefusal(state: StreamState, batch: AppendBatch): HeadwaterError | undefined {
  const { fencingToken, matchSeqNum } = batch
  if (fencingToken !== undefined && fencingToken !== state.fencingToken) {
    return new HeadwaterError('fencing_token_mismatch', 'the stream has another fencing token', {
      field: 'fencingToken',
      fencingToken: state.fencingToken,
    })
  }
  if (matchSeqNum !== undefined && matchSeqNum !== state.tail.seqNum) {
    return new HeadwaterError(
      'seq_num_mismatch',
      `the next record gets sequence number ${state.tail.seqNum}, not ${matchSeqNum}`,
      { field: 'matchSeqNum', seqNum: state.tail.seqNum },
    )
  }
  return undefined
}

function refuse(error: HeadwaterError): Refused {
  return { kind: 'refused', error }
}

/**
 * The timestamp of a record (docs/protocol.md "Timestamps"), or undefined if the mode requires one and the
 * writer gave none. Never less than `previous`, the timestamp of the preceding record. Times are in
 * milliseconds.
 */
function assignTimestamp(
  given: number | undefined,
  previous: number,
  timestamping: StreamConfig['timestamping'],
  now: number,
): number | undefined {
  const chosen = timestamping.mode === 'arrival' ? now : given
  if (chosen === undefined && timestamping.mode === 'client-require') return undefined
  const wanted = chosen ?? now
  const capped = timestamping.uncapped ? wanted : Math.min(wanted, now)
  return Math.max(capped, previous)
}
