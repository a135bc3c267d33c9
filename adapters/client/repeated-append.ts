import type { AppendBatch } from '../../src/model/append-input.ts'
import { equalBytes } from '../../src/model/bytes.ts'
import type { HeadwaterError } from '../../src/model/errors.ts'
import type { AppendAck } from '../../src/model/info.ts'
import { type AppendRecord, equalHeaders, type SequencedRecord } from '../../src/model/record.ts'
import { decodeReadBatch } from '../../src/wire/protobuf.ts'
import type { ClientCore } from './core.ts'
import { decoded, withEffects } from './errors.ts'
import { tailOf } from './read-requests.ts'
import type { RemoteTarget } from './stream-target.ts'

/** An append of unknown outcome, on condition that nothing comes in between. */
type ConditionalBatch = AppendBatch & { readonly matchSeqNum: number }

/**
 * Finds out whether an earlier attempt stored a batch. Otherwise rejects with the error of the last one.
 */
export async function resolveRepeated(
  core: ClientCore,
  target: RemoteTarget,
  batch: ConditionalBatch,
  error: HeadwaterError,
): Promise<AppendAck> {
  const unknown = withEffects(error, true)
  if (error.code !== 'seq_num_mismatch' && error.code !== 'fencing_token_mismatch') throw unknown
  // Nothing has got the sequence number of the batch, and a copy of the batch on its way fails as this one.
  if (error.seqNum !== undefined && error.seqNum <= batch.matchSeqNum) throw error
  const stored = await storedAck(core, target, batch).catch(() => undefined)
  if (stored === undefined) throw unknown
  if (stored === 'others') throw error
  return stored
}

/**
 * Reads what is stored at the place of a batch with `matchSeqNum`. Resolves to the ack of the batch, to
 * `others` if other records are there, and to undefined if not all of them could be read.
 */
async function storedAck(
  core: ClientCore,
  target: RemoteTarget,
  { records, matchSeqNum }: ConditionalBatch,
): Promise<AppendAck | 'others' | undefined> {
  const stored = await storedAt(core, target, matchSeqNum, records.length)
  const last = stored?.at(-1)
  if (stored === undefined || last === undefined) return undefined
  if (!isSame(records, stored)) return 'others'
  const end = { seqNum: last.seqNum + 1, timestamp: last.timestamp }
  const { seqNum, timestamp } = stored[0]!
  const tail = await tailOf(core, target).catch(() => end)
  return { start: { seqNum, timestamp }, end, tail: tail.seqNum < end.seqNum ? end : tail }
}

/** Resolves to the records from a sequence number on; to undefined unless all of them are there. */
async function storedAt(
  { sender }: ClientCore,
  { path, basin, recordHeaders }: RemoteTarget,
  seqNum: number,
  count: number,
): Promise<readonly SequencedRecord[] | undefined> {
  const { body } = await sender.send({
    method: 'GET',
    path: `${path}/records?seq_num=${seqNum}&count=${count}`,
    basin,
    vendor: recordHeaders,
    accept: 'application/protobuf',
    isRepeatable: true,
  })
  const { records } = decoded(false, () => decodeReadBatch(body))
  const isWhole = records.length === count && records.every((record, i) => record.seqNum === seqNum + i)
  return isWhole ? records : undefined
}

function isSame(sent: readonly AppendRecord[], stored: readonly SequencedRecord[]): boolean {
  return sent.every(({ headers, body }, i) => {
    const record = stored[i]!
    return equalBytes(body, record.body) && equalHeaders(headers, record.headers)
  })
}
