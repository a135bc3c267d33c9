import type { StoredBlock } from '../../../src/storage/contract.ts'
import { splitBlock } from '../../../src/storage/split-block.ts'
import { splitting, wrapped } from '../wrapped-storage.ts'
import { type Mutation, mutate, mutateRead } from './mutation.ts'

export const readMutations: readonly Mutation[] = [
  {
    breaks: 'read: leaves out a block',
    noticedBy: [
      'read: ranges are right however the storage merges neighbours',
      'read: pages hold every record once',
      'random: random operations do what a naive model does (seed 1)',
    ],
    make: mutateRead((blocks) => blocks.filter((_, i) => i !== 5)),
  },
  {
    breaks: 'read from a sequence number: begins with the block behind',
    noticedBy: ['read: a read from a sequence number begins with the block that holds it'],
    make: mutate((session) => ({
      async read(logId, range) {
        const blocks = await session.read(logId, range)
        const { from } = range
        return 'seqNum' in from ? blocks.filter(({ firstSeqNum }) => firstSeqNum >= from.seqNum) : blocks
      },
    })),
  },
  {
    breaks: 'read from a timestamp: begins with the last of equal ones',
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
    breaks: 'read: the end is inclusive',
    noticedBy: ['read: a read ends with the block that holds the record before endSeqNum'],
    make: mutate((session) => ({
      read: (logId, range) => session.read(logId, { ...range, endSeqNum: range.endSeqNum + 1 }),
    })),
  },
  {
    breaks: 'read: nothing when the first block is larger than bytesMax',
    noticedBy: ['read: a read stops after the block that reaches bytesMax, but has one block at least'],
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
    breaks: 'read: hands out what was appended',
    noticedBy: ['read: whoever writes into returned bytes damages neither the log nor what was appended'],
    make: mutate((session) => {
      const appended = new Map<number, Uint8Array>()
      return {
        append(request) {
          appended.set(request.block.firstSeqNum, request.block.data)
          return session.append(request)
        },
        async read(logId, range) {
          const blocks = await session.read(logId, range)
          return blocks.map((block) => ({ ...block, data: appended.get(block.firstSeqNum)! }))
        },
      }
    }),
  },
  {
    breaks: 'splitting: also for who asks for blocks that are not split',
    noticedBy: ['read: a large batch is read from anywhere within it, and in one block by who asks for that'],
    make: () =>
      wrapped(
        (session) => ({ read: (logId, range) => session.read(logId, { ...range, unsplit: false }) }),
        splitting(),
      ),
  },
  {
    breaks: 'splitting: leaves out the piece behind a position',
    noticedBy: ['read: a large batch is read from anywhere within it, and in one block by who asks for that'],
    make: mutateRead((blocks) => {
      const [first, ...rest] = blocks
      return first === undefined ? [] : [...splitBlock(first, 60 * 1024).filter((_, i) => i !== 1), ...rest]
    }),
  },
  {
    breaks: 'merging: beyond 1,000 records',
    noticedBy: ['read: merged neighbours keep within 1,000 records and 1 MiB'],
    make: mutateRead(mergeAll),
  },
  {
    breaks: 'merging: beyond the encoded size of a batch',
    noticedBy: [
      'read: merged neighbours keep within the encoded size of a batch, which tiny headers come to before they come to 1 MiB',
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
