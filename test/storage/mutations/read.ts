import { splitBlock } from '../../../src/storage/block-sizes.ts'
import type { StoredBlock } from '../../../src/storage/contract.ts'
import { splitting, wrapped } from '../wrapped-storage.ts'
import { type Mutation, mutate, mutateRead } from './mutation.ts'

export const readMutations: readonly Mutation[] = [
  {
    breaks: 'read: omits a block',
    noticedBy: [
      'read: any range returns the right records, whichever blocks the storage merges',
      'read: consecutive reads return every record once',
      'random: random operations match a naive model (seed 1)',
    ],
    make: mutateRead((blocks) => blocks.filter((_, i) => i !== 5)),
  },
  {
    breaks: 'read from a sequence number: begins one block late',
    noticedBy: ['read: a read from a sequence number begins with the block that contains it'],
    make: mutate((session) => ({
      async read(logId, range) {
        const blocks = await session.read(logId, range)
        const { from } = range
        return 'seqNum' in from ? blocks.filter(({ firstSeqNum }) => firstSeqNum >= from.seqNum) : blocks
      },
    })),
  },
  {
    breaks: 'read from a timestamp: begins with the last of equal timestamps',
    noticedBy: ['read: a read from a timestamp begins with the first block that reaches it'],
    make: mutate((session) => ({
      async read(logId, range) {
        const blocks = await session.read(logId, range)
        const { from } = range
        if ('seqNum' in from) return blocks
        const equal = blocks.filter(({ lastTimestamp }) => lastTimestamp === from.timestamp)
        return blocks.slice(Math.max(0, equal.length - 1))
      },
    })),
  },
  {
    breaks: 'read: treats the end as inclusive',
    noticedBy: ['read: a read ends with the block that contains the record before endSeqNum'],
    make: mutate((session) => ({
      read: (logId, range) => session.read(logId, { ...range, endSeqNum: range.endSeqNum + 1 }),
    })),
  },
  {
    breaks: 'read: returns nothing if the first block exceeds bytesMax',
    noticedBy: ['read: a read stops after the block that reaches bytesMax, and returns at least one block'],
    make: mutate((session) => ({
      async read(logId, range) {
        let bytes = 0
        const blocks = await session.read(logId, range)
        return blocks.filter(({ meteredBytes }) => {
          bytes += meteredBytes
          return bytes <= range.bytesMax
        })
      },
    })),
  },
  {
    breaks: 'splitting: ignores unsplit',
    noticedBy: ['read: a large batch can be read from any record, and in one block if unsplit is set'],
    make: () =>
      wrapped(
        (session) => ({ read: (logId, range) => session.read(logId, { ...range, unsplit: false }) }),
        splitting(),
      ),
  },
  {
    breaks: 'splitting: omits the piece after a position',
    noticedBy: ['read: a large batch can be read from any record, and in one block if unsplit is set'],
    make: mutateRead((blocks) => {
      const [first, ...rest] = blocks
      return first === undefined ? [] : [...splitBlock(first, 60 * 1024).filter((_, i) => i !== 1), ...rest]
    }),
  },
  {
    breaks: 'merging: beyond 1,000 records',
    noticedBy: ['read: merged blocks have at most 1,000 records and 1 MiB'],
    make: mutateRead(mergeAll),
  },
  {
    breaks: 'merging: beyond the encoded size of a batch',
    noticedBy: [
      'read: merged blocks stay within the encoded size of a batch, which tiny headers reach before 1 MiB metered',
    ],
    make: mutateRead((blocks) =>
      blocks.reduce((sum, { meteredBytes }) => sum + meteredBytes, 0) <= 1_048_576
        ? mergeAll(blocks)
        : blocks,
    ),
  },
]

function mergeAll(blocks: StoredBlock[]): StoredBlock[] {
  const [first] = blocks
  if (first === undefined) return blocks
  return [
    {
      ...first,
      endSeqNum: blocks.at(-1)!.endSeqNum,
      lastTimestamp: blocks.at(-1)!.lastTimestamp,
      meteredBytes: blocks.reduce((sum, { meteredBytes }) => sum + meteredBytes, 0),
      data: Buffer.concat(blocks.map(({ data }) => data)),
    },
  ]
}
