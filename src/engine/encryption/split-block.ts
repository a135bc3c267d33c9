import type { StoredBlock } from '../../storage/contract.ts'
import { decodeSegments, decodeSkeleton } from '../../storage/sealed-block.ts'
import { intact } from '../damage.ts'

/** The appends of which a storage made one block, each as a block of its own. Throws 500 `storage` for what is no block of sealed records. */
export function splitBlock(block: StoredBlock): StoredBlock[] {
  return intact(() => {
    const segments = decodeSegments(block.data)
    // The usual case. Whether it agrees with the block is looked at when it is opened.
    if (segments.length === 1) return [block]
    let { firstSeqNum } = block
    let meteredBytes = 0
    const parts = segments.map((segment): StoredBlock => {
      const records = decodeSkeleton(segment.skeleton)
      const part = {
        firstSeqNum,
        endSeqNum: firstSeqNum + records.length,
        firstTimestamp: records[0]?.timestamp ?? block.firstTimestamp,
        lastTimestamp: records.at(-1)?.timestamp ?? block.lastTimestamp,
        meteredBytes: segment.meteredBytes,
        expiresAt: block.expiresAt,
        data: segment.data,
      }
      firstSeqNum = part.endSeqNum
      meteredBytes += part.meteredBytes
      return part
    })
    const agrees =
      firstSeqNum === block.endSeqNum &&
      meteredBytes === block.meteredBytes &&
      parts[0]?.firstTimestamp === block.firstTimestamp &&
      parts.at(-1)?.lastTimestamp === block.lastTimestamp
    if (!agrees) throw new RangeError('the segments of a block are not what it holds')
    return parts
  })
}
