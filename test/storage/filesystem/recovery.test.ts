import { describe, expect, test, vi } from 'vitest'
import { checkRead, WHOLE_LOG } from '../../../adapters/conformance/blocks.ts'
import { LogWriter } from '../../../adapters/conformance/log-writer.ts'
import { directoryMedium } from '../../../adapters/storage/media/directory.ts'
import { Prng } from '../../../src/runtime/random.ts'
import type { StorageSession } from '../../../src/storage/contract.ts'
import { hookedFiles, systemError } from './hooked-files.ts'
import { SimulatedDisk } from './simulated-disk.ts'
import { openSimulated } from './workload.ts'

const LARGE = 10_000_000
const HEADER = 32

test('syncs files only if they are open for writing, as Windows requires', async () => {
  const disk = new SimulatedDisk(new Prng(1))
  const synced: unknown[] = []
  const files = hookedFiles(disk, (operation, name, mode) => {
    if (operation !== 'datasync') return
    if (mode === 'read') throw systemError('EPERM')
    synced.push(name)
  })
  const session = await openSimulated(files, LARGE, 'process-crash')
  const writer = await LogWriter.create(session, 'a')
  await writer.append()
  // Another opening without the end of the first one, as after a crash.
  synced.length = 0
  const reopened = await openSimulated(files, LARGE, 'process-crash')
  expect(synced).toContain('journal-0000000001')
  checkRead(writer.written, WHOLE_LOG, await reopened.read('a', WHOLE_LOG))
  await reopened.close()
})

test('an opening makes durable what a sync lost that failed', async () => {
  for (let seed = 1; seed <= 5; seed++) {
    const disk = new SimulatedDisk(new Prng(seed))
    const session = await openSimulated(disk, LARGE, 'process-crash')
    for (let value = 0; value < 5; value++) {
      await session.commit([{ kind: 'put', collection: 'streams', key: 'a', value }])
    }
    disk.faults = (operation) => (operation === 'datasync' ? 'EIO' : undefined)
    await session.close()
    disk.faults = () => undefined
    await (await openSimulated(disk, LARGE, 'process-crash')).close()
    const crashed = disk.crashedAfter(disk.length, 'everything', new Prng(seed))
    const reopened = await openSimulated(crashed, LARGE)
    expect((await reopened.get('streams', 'a'))?.value).toBe(4)
    await reopened.close()
  }
})

describe('a damaged byte', () => {
  test('in a group that others follow is reported, with file and offset', async () => {
    const { disk, offsets } = await written(6)
    for (let group = 0; group < 5; group++) {
      for (let offset = offsets[group]!; offset < offsets[group + 1]!; offset += 11) {
        const failure = openSimulated(damaged(disk, 'journal-0000000001', offset), LARGE)
        // An opening need not notice damaged padding.
        if (isPadding(disk, offset)) await failure.catch(() => {})
        else {
          await expect(failure, `byte ${offset}`).rejects.toMatchObject({ kind: 'corrupt' })
          await expect(failure).rejects.toThrow(`journal-0000000001 is damaged at offset ${offsets[group]}`)
        }
      }
    }
  })

  test('in the last group of a crash is treated as a torn tail', async () => {
    const { disk, offsets, writer } = await written(6)
    const torn = damaged(disk, 'journal-0000000001', offsets[5]! + 30)
    const session = await openSimulated(torn, LARGE)
    expect((await session.head('a'))?.tail.seqNum).toBe(writer.head.tail.seqNum - 1)
    checkRead(writer.written.slice(0, -1), WHOLE_LOG, await session.read('a', WHOLE_LOG))
    await session.close()
  })

  test('in a segment fails the reads that hit it, and only those', async () => {
    const disk = await rolled()
    const name = disk.names.find((file) => file.startsWith('segment'))!
    const { length } = disk.contentOf(name)
    let failures = 0
    let reads = 0
    for (let offset = HEADER; offset < length; offset += 3_011) {
      const session = await openSimulated(damaged(disk, name, offset), LARGE)
      for (const logId of ['a', 'b']) {
        const error = await session.read(logId, WHOLE_LOG).then(
          () => undefined,
          (failure: unknown) => failure,
        )
        reads++
        if (error === undefined) continue
        failures++
        expect(error).toMatchObject({ kind: 'corrupt' })
        expect((error as Error).message).toContain(`${name} is damaged at offset`)
      }
      await session.close()
    }
    expect(failures).toBe(reads / 2)
  })
})

test.each(Array.from({ length: 20 }, (_, seed) => seed))(
  'an opening makes durable what a close could not (seed %i)',
  async (seed) => {
    const prng = new Prng(seed)
    const disk = new SimulatedDisk(prng)
    vi.spyOn(console, 'error').mockReturnValue()
    const first = await openSimulated(disk, LARGE)
    await (await LogWriter.create(first, 'a')).append()
    disk.faults = (operation) => (operation === 'datasync' ? 'EIO' : undefined)
    await first.close()
    disk.faults = () => undefined
    const second = await openSimulated(disk, LARGE)
    const writer = new LogWriter(second, 'a', await second.head('a'))
    for (let i = 0; i < 5; i++) await writer.append()
    const crashed = await openSimulated(disk.crashedAfter(disk.length, 'everything', prng), LARGE)
    expect(await crashed.head('a')).toMatchObject({ tail: writer.head.tail })
    await Promise.all([second.close(), crashed.close()])
  },
)

test('a call for which memory is short is refused without a trace', async () => {
  const disk = new SimulatedDisk(new Prng(1))
  const session = await openSimulated(disk, LARGE)
  const writer = await LogWriter.create(session, 'a')
  await writer.append()
  const before = writer.head
  const allocate = vi.spyOn(Buffer, 'allocUnsafeSlow').mockImplementationOnce(() => {
    throw new RangeError('Array buffer allocation failed')
  })
  // Several frames, of which the first ones fit.
  const refused = writer.append({ count: 20, bodyBytes: 30_000 })
  await expect(refused).rejects.toMatchObject({ kind: 'io', nothingWritten: true })
  expect(allocate).toHaveBeenCalled()
  allocate.mockRestore()
  const next = new LogWriter(session, 'a', before)
  await next.append()
  await session.close()
  const reopened = await openSimulated(disk, LARGE)
  expect(await reopened.head('a')).toMatchObject({ tail: next.head.tail })
  await reopened.close()
})

test('a list leaves out what is removed meanwhile', async () => {
  const disk = new SimulatedDisk(new Prng(1))
  const session = await openSimulated(disk, 3_000)
  const writer = await LogWriter.create(session, 'a')
  await writer.append()
  const files = hookedFiles(disk, (operation, name) => {
    if (operation === 'size' && name === 'reserve') throw systemError('ENOENT')
  })
  const medium = await directoryMedium(files)
  const reserve = await medium.create('reserve')
  await reserve.finish()
  expect((await medium.list()).map(({ name }) => name)).toEqual(['journal-0000000001'])
  await medium.close()
  await session.close()
})

test('foreign files are ignored', async () => {
  const { disk } = await written(1)
  await disk.open('notes.txt', 'create')
  await disk.open('journal-1.tmp', 'create')
  await (await openSimulated(disk, LARGE)).close()
  expect(disk.names).toEqual(expect.arrayContaining(['notes.txt', 'journal-1.tmp']))
})

test('openings continue the journal, and after a clean end write only its empty group again', async () => {
  const disk = new SimulatedDisk(new Prng(1))
  for (let i = 0; i < 5; i++) {
    const session = await openSimulated(disk, LARGE)
    await session.commit([{ kind: 'put', collection: 'streams', key: 'a', value: i }])
    await session.close()
  }
  expect(disk.names).toEqual(['journal-0000000001'])
  const before = disk.length
  const session = await openSimulated(disk, LARGE)
  expect((await session.get('streams', 'a'))?.value).toBe(4)
  // The directory is synced; the group is cut off, written and synced.
  expect(disk.length).toBe(before + 4)
  await session.close()
})

test('user data never passes for a group', async () => {
  const { disk, offsets } = await written(4)
  const group = disk.contentOf('journal-0000000001').subarray(offsets[2]!, offsets[3]!)
  const other = new SimulatedDisk(new Prng(1))
  const session = await openSimulated(other, LARGE)
  const writer = await LogWriter.create(session, 'a')
  for (let i = 0; i < 3; i++) await writer.append({ tag: group.toString('latin1'), bodyBytes: 3000 })
  const crashed = other.crashedAfter(other.length, 'nothing', new Prng(1))
  const content = crashed.contentOf('journal-0000000001')
  const torn = copyOf(crashed, () => Buffer.concat([content.subarray(0, content.length - 9), group]))
  const reopened = await openSimulated(torn, LARGE)
  expect((await reopened.head('a'))?.tail.seqNum).toBe(2)
})

/** A log with so many groups, as a crash leaves it, and their offsets. */
async function written(groups: number) {
  const disk = new SimulatedDisk(new Prng(1))
  const session = await openSimulated(disk, LARGE)
  const offsets: number[] = []
  let writer: LogWriter | undefined
  for (let i = 0; i < groups; i++) {
    offsets.push(i === 0 ? HEADER : disk.contentOf('journal-0000000001').length)
    if (writer === undefined) writer = await LogWriter.create(session, 'a')
    else await writer.append({ bodyBytes: 40 })
  }
  return { disk, session, offsets, writer: writer! }
}

/** Two logs in one segment. */
async function rolled(): Promise<SimulatedDisk> {
  const disk = new SimulatedDisk(new Prng(1))
  const session = await openSimulated(disk, 40_000)
  const writers = [await LogWriter.create(session, 'a'), await LogWriter.create(session, 'b')]
  for (let i = 0; i < 5; i++) {
    for (const writer of writers) await writer.append({ bodyBytes: 3_900 + i })
  }
  await rolling(session, disk)
  await session.close()
  return disk
}

/** Resolves when there is a checkpoint, and the files that it replaces are removed. */
async function rolling(session: StorageSession, disk: SimulatedDisk): Promise<void> {
  const isDone = (): boolean =>
    disk.names.some((name) => name.startsWith('checkpoint')) && !disk.names.includes('journal-0000000001')
  for (let i = 0; !isDone(); i++)
    await session.commit([{ kind: 'put', collection: 'streams', key: 'a', value: i }])
}

function damaged(disk: SimulatedDisk, name: string, offset: number): SimulatedDisk {
  return copyOf(disk, (file, content) => {
    if (file !== name) return content
    const changed = Buffer.from(content)
    changed[offset]! ^= 0x10
    return changed
  })
}

function isPadding(disk: SimulatedDisk, offset: number): boolean {
  return disk.contentOf('journal-0000000001')[offset] === 0
}

function copyOf(disk: SimulatedDisk, change: (name: string, content: Buffer) => Buffer): SimulatedDisk {
  return new SimulatedDisk(
    new Prng(1),
    new Map(disk.names.map((name) => [name, change(name, disk.contentOf(name))])),
  )
}
