import { describe, expect, test } from 'vitest'
import { LogWriter, NOW, WHOLE_LOG } from '../../../../adapters/conformance/log-writer.ts'
import { checkRead } from '../../../../adapters/conformance/model.ts'
import { reclaimAll } from '../../../../adapters/conformance/reclaim.ts'
import { verifyFiles } from '../../../../adapters/storage/filesystem/verify/verify-files.ts'
import { Prng } from '../../../../src/runtime/prng.ts'
import type { StorageSession } from '../../../../src/storage/contract.ts'
import { changedDisk } from '../engine-disk.ts'
import { type Hook, hookedFiles, systemError } from '../hooked-files.ts'
import { type Loss, SimulatedDisk } from '../simulated-disk.ts'
import { openSimulated } from '../workload.ts'

const LARGE_BLOCK_BYTES = 20_000
const ROLL_BYTES = 400_000
const NEVER = 100_000_000
const LARGE_BODY = { bodyBytes: 25_000 }
const LOSSES: readonly Loss[] = ['nothing', 'everything', 'some']
const JOURNAL = 'journal-0000000001'
const SEGMENT = 'segment-0000000001'

describe('a journal of large blocks', () => {
  test('becomes a segment without being read or written', async () => {
    const operations: string[] = []
    const { disk, session, writers } = await written(1, {
      hook: (operation, name) => void operations.push(`${operation} ${name}`),
    })
    operations.length = 0
    await rolled(session, disk)
    expect(disk.names).toContain(SEGMENT)
    expect(operations).toContain(`link ${SEGMENT}`)
    expect(
      operations.filter((operation) => operation.includes('segment') || operation === `read ${JOURNAL}`),
    ).toEqual([`link ${SEGMENT}`])
    expect(operations.slice(operations.indexOf(`link ${SEGMENT}`))).toContain('syncDirectory ')
    await expectAll(session, writers)
  })

  test('is read only for its small blocks, which are copied', async () => {
    let bytesRead = 0
    const { disk, session, writers } = await written(2, {
      small: 20,
      onRead: (name, bytes) => {
        if (name === JOURNAL) bytesRead += bytes
      },
    })
    await rolled(session, disk)
    expect(disk.links).toBe(1)
    expect(disk.names).toEqual(expect.arrayContaining([SEGMENT, 'segment-0000000002']))
    expect(disk.contentOf('segment-0000000002').length).toBeLessThan(LARGE_BLOCK_BYTES)
    expect(bytesRead).toBeGreaterThan(0)
    expect(bytesRead).toBeLessThan(LARGE_BLOCK_BYTES)
    await expectAll(session, writers)
  })

  test.each<[string, Contents]>([
    ['has few of them', { large: 6 }],
    ['has more bytes of others', { large: 12, small: 30, smallBodyBytes: 15_000, rollBytes: 700_000 }],
  ])('is copied when it %s', async (_, contents) => {
    const { disk, session, writers } = await written(1, contents)
    await rolled(session, disk)
    expect(disk.links).toBe(0)
    expect(disk.contentOf(SEGMENT).toString('latin1', 0, 5)).toBe('HDWRS')
    await expectAll(session, writers)
  })

  test('keeps the order of large and small blocks, wherever a read begins, after reopening too', async () => {
    const { disk, session, writers } = await written(2, { small: 3 })
    await rolled(session, disk)
    for (const writer of writers) await writer.append({ bodyBytes: 30 })
    await expectAll(session, writers)
    await session.close()
    const reopened = await openSimulated(disk, NEVER, 'power-loss', LARGE_BLOCK_BYTES)
    await expectAll(reopened, writers)
    for (const { logId, written: expected, head } of writers) {
      for (let seqNum = 0; seqNum < head.tail.seqNum; seqNum++) {
        for (const from of [{ seqNum }, { timestamp: expected[seqNum]!.block.lastTimestamp }]) {
          const range = { from, endSeqNum: seqNum + 5, bytesMax: 40_000 }
          checkRead(expected, range, await reopened.read(logId, range))
        }
      }
    }
  })

  test('that was written without syncing loses nothing that it contained when it was adopted', async () => {
    const { disk, session, writers } = await written(2, { small: 3, durability: 'process-crash' })
    await rolled(session, disk)
    expect(disk.links).toBe(1)
    for (const loss of LOSSES) {
      const crashed = disk.crashedAfter(disk.length, loss, new Prng(2))
      await expectAll(await openSimulated(crashed, NEVER, 'process-crash', LARGE_BLOCK_BYTES), writers)
    }
  })

  test('that a killed process left is adopted up to its last group', async () => {
    const { disk, writers } = await written(1)
    const killed = disk.crashedAfter(disk.length, 'nothing', new Prng(1))
    const torn = await killed.open(JOURNAL, 'read')
    await torn.write(Buffer.alloc(5_000, 7), await torn.size())
    const session = await openSimulated(killed, ROLL_BYTES, 'power-loss', LARGE_BLOCK_BYTES)
    await rolled(session, killed)
    expect(killed.links).toBe(1)
    await expectAll(session, writers)
  })

  test.each([
    ['as one', (content: Buffer) => content],
    ['as two', (content: Buffer) => Buffer.from(content)],
  ])(
    'that has two names after a crash is opened, also if both names were copied %s file',
    async (_, copied) => {
      const { disk, session, writers } = await written(2, { small: 3 })
      await rolled(session, disk)
      const removed = Array.from({ length: disk.length }, (_, count) => disk.length - count).find((count) =>
        disk.crashedAfter(count, 'nothing', new Prng(1)).names.includes(JOURNAL),
      )!
      const crashed = disk.crashedAfter(removed, 'nothing', new Prng(1))
      expect(crashed.names).toEqual(expect.arrayContaining([JOURNAL, SEGMENT, 'checkpoint-0000000002']))
      const copy = changedDisk(crashed, (_, content) => copied(content))
      expect((await verifyFiles(copy, { ofEngine: false })).problems).toEqual([])
      const reopened = await openSimulated(copy, NEVER, 'power-loss', LARGE_BLOCK_BYTES)
      await expectAll(reopened, writers)
      expect(copy.names).not.toContain(JOURNAL)
      await reopened.close()
    },
  )

  test('is not compacted with others, however many there are', async () => {
    const created: string[] = []
    const { disk, session, writers } = await written(1, {
      rollBytes: ROLL_BYTES,
      large: 300,
      hook: (operation, name, mode) => {
        if (operation === 'open' && mode === 'create') created.push(name)
      },
    })
    await commitUntil(session, () => !disk.names.includes(JOURNAL))
    expect(disk.links).toBeGreaterThan(12)
    expect(created.filter((name) => name.startsWith('segment'))).toEqual([])
    await expectAll(session, writers)
  })

  test('that is mostly freed is compacted, and its live blocks are kept', async () => {
    const { disk, session, writers } = await written(3, { small: 3, largeRecords: 2 })
    await rolled(session, disk)
    const [kept, trimmed, deleted] = writers
    await session.commit([{ kind: 'delete-log', logId: deleted!.logId }])
    // Inside a large block, of which nothing is freed.
    const trimPoint = trimmed!.written[12]!.block.endSeqNum - 1
    await trimmed!.append({ trimPoint, trimmedAt: NOW })
    await reclaimAll(session, { now: NOW, trimmedBefore: NOW, blocksMax: 5 })
    await commitUntil(session, () => !disk.names.includes(SEGMENT))
    for (const expected of trimmed!.written) expected.mayBeFreed = expected.block.endSeqNum <= trimPoint
    await expectAll(session, [kept!, trimmed!])
    await session.close()
    await expectAll(await openSimulated(disk, NEVER, 'power-loss', LARGE_BLOCK_BYTES), [kept!, trimmed!])
  })

  test('reports damage with its offset, only to reads of the damaged part', async () => {
    const { disk, session, writers } = await written(2, { small: 3 })
    await rolled(session, disk)
    await session.close()
    const content = disk.contentOf(SEGMENT)
    content[content.indexOf(writers[0]!.written[4]!.block.data) + 10_000]! ^= 1
    const reopened = await openSimulated(disk, NEVER, 'power-loss', LARGE_BLOCK_BYTES)
    const reading = reopened.read(writers[0]!.logId, WHOLE_LOG)
    await expect(reading).rejects.toMatchObject({ kind: 'corrupt' })
    await expect(reading).rejects.toThrow(`${SEGMENT} is damaged at offset`)
    await expectAll(reopened, writers.slice(1))
  })
})

describe('if a hard link', () => {
  test.each(['EPERM', 'ENOTSUP', 'EMLINK', 'ENOSPC', 'EIO', 'Unknown system error -524'])(
    'fails with %s each time, journals are copied, and nothing is left of the attempts',
    async (code) => {
      const { disk, session, writers } = await written(2, { small: 3 })
      disk.faults = (operation) => (operation === 'link' ? code : undefined)
      await rolled(session, disk)
      expect(disk.names.filter((name) => name.startsWith('segment'))).toHaveLength(1)
      expect(disk.links).toBe(0)
      await expectAll(session, writers)
      await session.reclaim({ now: NOW, trimmedBefore: NOW, blocksMax: 1 })
    },
  )

  test('fails for the second of two journals, only that one is copied', async () => {
    const { disk, writers } = await written(2, { small: 3 })
    const killed = disk.crashedAfter(disk.length, 'nothing', new Prng(1))
    const more = await openSimulated(killed, NEVER, 'power-loss', LARGE_BLOCK_BYTES)
    const continuing = writers.map(
      ({ logId, head, written: before }) => new LogWriter(more, logId, head, before),
    )
    for (let i = 0; i < 12; i++) for (const writer of continuing) await writer.append(LARGE_BODY)
    await more.close()
    killed.faults = (operation) => (operation === 'link' && killed.links > 0 ? 'EMLINK' : undefined)
    const session = await openSimulated(killed, ROLL_BYTES, 'power-loss', LARGE_BLOCK_BYTES)
    await rolled(session, killed)
    expect(killed.links).toBe(1)
    const kinds = ['segment-0000000001', 'segment-0000000003'].map((name) => killed.contentOf(name)[4])
    expect(String.fromCharCode(...kinds.map((letter) => letter!))).toBe('JS')
    await expectAll(session, continuing)
    await session.close()
    const reopened = await openSimulated(killed, NEVER, 'power-loss', LARGE_BLOCK_BYTES)
    await expectAll(reopened, continuing)
  })

  test('is created but reported as failed, the journal is copied, and the link is removed', async () => {
    const { disk, writers } = await written(1)
    const crashed = disk.crashedAfter(disk.length, 'nothing', new Prng(1))
    const files = hookedFiles(crashed, () => {})
    const link: typeof files.link = async (...names) => {
      await files.link(...names)
      throw systemError('EIO')
    }
    const session = await openSimulated({ ...files, link }, ROLL_BYTES, 'power-loss', LARGE_BLOCK_BYTES)
    await rolled(session, crashed)
    expect(crashed.names.filter((name) => name.startsWith('segment'))).toEqual(['segment-0000000002'])
    await expectAll(session, writers)
  })

  test.each<[string, Hook]>([
    ['is created, and the other blocks cannot be copied', createsSegment],
    ['is created, and the directory cannot be synced', (operation) => operation === 'syncDirectory'],
    [
      'is created, and the checkpoint cannot be written',
      (operation, name) => isCheckpoint(name) && operation === 'write',
    ],
    [
      'is created, and the checkpoint cannot be renamed',
      (operation, name) => isCheckpoint(name) && operation === 'rename',
    ],
  ])('%s, the roll fails, and a later one succeeds', async (_, isFailing) => {
    let failures = 1
    let isLinked = false
    const { disk, session, writers } = await written(2, {
      small: 3,
      hook: (...operation) => {
        isLinked ||= operation[0] === 'link'
        if (!isLinked || failures === 0 || !isFailing(...operation)) return
        failures--
        throw systemError('EIO')
      },
    })
    await put(session, 0)
    await commitUntil(session, () => failures === 0)
    const reclaiming = session.reclaim({ now: NOW, trimmedBefore: NOW, blocksMax: 1 })
    await expect(reclaiming).rejects.toMatchObject({ kind: 'io' })
    expect(disk.names.filter((name) => /^(segment|checkpoint)/.test(name))).toEqual([])
    for (const loss of LOSSES) {
      const crashed = disk.crashedAfter(disk.length, loss, new Prng(3))
      await expectAll(await openSimulated(crashed, NEVER, 'power-loss', LARGE_BLOCK_BYTES), writers)
    }
    for (let i = 0; i < 20; i++) await writers[0]!.append(LARGE_BODY)
    await commitUntil(session, () => !disk.names.includes(JOURNAL))
    await expectAll(session, writers)
  })

  test('conflicts with a file that an opening could not remove, the file is replaced', async () => {
    const { disk, writers } = await written(1)
    const crashed = disk.crashedAfter(disk.length, 'nothing', new Prng(1))
    await crashed.link(JOURNAL, SEGMENT)
    let refusals = 1
    const files = hookedFiles(crashed, (operation, name) => {
      if (operation === 'unlink' && name === SEGMENT && refusals-- > 0) throw systemError('EBUSY')
    })
    const session = await openSimulated(files, ROLL_BYTES, 'power-loss', LARGE_BLOCK_BYTES)
    await rolled(session, crashed)
    expect(crashed.names).toContain(SEGMENT)
    await expectAll(session, writers)
  })
})

function isCheckpoint(name: string): boolean {
  return name.startsWith('checkpoint')
}

function createsSegment(...[operation, name, mode]: Parameters<Hook>): boolean {
  return operation === 'open' && mode === 'create' && name.startsWith('segment')
}

interface Contents {
  /** Blocks of each log. */
  readonly large?: number
  /** Blocks of each log, before each of the large ones, as long as there are any. */
  readonly small?: number
  readonly smallBodyBytes?: number
  /** In each large block. */
  readonly largeRecords?: number
  readonly durability?: 'power-loss' | 'process-crash'
  /** Default: of so much that another block or document makes a roll due. */
  readonly rollBytes?: number
  readonly hook?: Hook
  readonly onRead?: (name: string, bytes: number) => void
}

/** Logs of blocks of both kinds, in one journal that is about to be rolled. */
async function written(logs: number, contents: Contents = {}) {
  const {
    large = 12,
    largeRecords = 1,
    small = 0,
    smallBodyBytes = 40,
    durability = 'power-loss',
    hook = () => {},
    onRead = () => {},
  } = contents
  const disk = new SimulatedDisk(new Prng(1))
  const hooked = hookedFiles(disk, hook)
  const files = {
    ...hooked,
    open: async (...[name, mode]: Parameters<typeof disk.open>) => {
      const file = await hooked.open(name, mode)
      const read: typeof file.read = (buffer, position) => {
        onRead(name, buffer.length)
        return file.read(buffer, position)
      }
      return { ...file, read }
    },
  }
  const rollBytes = contents.rollBytes ?? logs * (large * largeRecords * 25_000 + small * 200)
  const session = await openSimulated(files, rollBytes, durability, LARGE_BLOCK_BYTES)
  const writers: LogWriter[] = []
  for (let i = 0; i < logs; i++) writers.push(await LogWriter.create(session, `log-${i}`))
  for (let i = 0; i < Math.max(large, small); i++) {
    for (const writer of writers) {
      if (i < small) await writer.append({ bodyBytes: smallBodyBytes, expiresAt: NOW + 1_000_000 + i })
      if (i < large) await writer.append({ count: largeRecords, ...LARGE_BODY })
    }
  }
  return { disk, session, writers }
}

/** Continues to write a little, until the first journal is rolled. */
async function rolled(session: StorageSession, disk: SimulatedDisk): Promise<void> {
  await commitUntil(session, () => !disk.names.includes(JOURNAL))
}

async function commitUntil(session: StorageSession, isDone: () => boolean): Promise<void> {
  for (let i = 0; !isDone(); i++) {
    expect(i, 'commits without effect').toBeLessThan(5_000)
    await put(session, i)
  }
}

function put(session: StorageSession, value: number): Promise<void> {
  return session.commit([{ kind: 'put', collection: 'settings', key: 'a', value }])
}

async function expectAll(session: StorageSession, writers: readonly LogWriter[]): Promise<void> {
  for (const { logId, written: expected, head } of writers) {
    const blocks = await session.read(logId, WHOLE_LOG)
    checkRead(expected, WHOLE_LOG, blocks)
    expect(await session.head(logId)).toEqual(head)
    const bytes = blocks.reduce((sum, { meteredBytes }) => sum + meteredBytes, 0)
    expect(await session.measure([logId])).toEqual([bytes])
  }
}
