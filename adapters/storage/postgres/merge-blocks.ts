import {
  BATCH_ENCODED_BYTES_MAX,
  BATCH_METERED_BYTES_MAX,
  BATCH_RECORDS_MAX,
} from '../../../src/model/limits.ts'
import type { AppendRequest, StoredBlock } from '../../../src/storage/contract.ts'
import { joinBytes } from './group-memory.ts'

/** A row of blocks: the records of one append, or of several. */
export interface BlockRow extends StoredBlock {
  /** The last append in the block. */
  readonly appendId: string
}

/** Joins the blocks of consecutive appends, as far as the contract allows. */
export function mergeBlocks(requests: readonly AppendRequest[]): BlockRow[] {
  const groups: AppendRequest[][] = []
  let size = { records: 0, meteredBytes: 0, bytes: 0 }
  for (const request of requests) {
    const { block } = request
    const records = block.endSeqNum - block.firstSeqNum
    const joined = {
      records: size.records + records,
      meteredBytes: size.meteredBytes + block.meteredBytes,
      bytes: size.bytes + block.data.length,
    }
    const current = groups.at(-1) ?? []
    const fits =
      current[0]?.block.expiresAt === block.expiresAt &&
      joined.records <= BATCH_RECORDS_MAX &&
      joined.meteredBytes <= BATCH_METERED_BYTES_MAX &&
      joined.bytes <= BATCH_ENCODED_BYTES_MAX
    if (fits) current.push(request)
    else groups.push([request])
    size = fits ? joined : { records, meteredBytes: block.meteredBytes, bytes: block.data.length }
  }
  return groups.map(rowOf)
}

function rowOf(requests: readonly AppendRequest[]): BlockRow {
  const first = requests[0]!.block
  const { block: last, head } = requests.at(-1)!
  const isSingle = requests.length === 1
  return {
    firstSeqNum: first.firstSeqNum,
    endSeqNum: last.endSeqNum,
    firstTimestamp: first.firstTimestamp,
    lastTimestamp: last.lastTimestamp,
    meteredBytes: requests.reduce((sum, { block }) => sum + block.meteredBytes, 0),
    expiresAt: first.expiresAt,
    appendId: head.appendId,
    data: isSingle ? first.data : joinBytes(requests.map(({ block }) => block.data)),
  }
}
