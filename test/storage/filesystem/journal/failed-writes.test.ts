import { describe, expect, test } from 'vitest'
import { LogWriter, WHOLE_LOG } from '../../../../adapters/conformance/log-writer.ts'
import { checkRead } from '../../../../adapters/conformance/model.ts'
import { Prng } from '../../../../src/runtime/prng.ts'
import type { StorageSession } from '../../../../src/storage/contract.ts'
import { StorageFailure } from '../../../../src/storage/errors.ts'
import { byRun } from '../../../support/run-size.ts'
import { checkRecovered } from '../check-recovered.ts'
import { type Faults, type Loss, SimulatedDisk } from '../simulated-disk.ts'
import { openSimulated, runWorkload } from '../workload.ts'

const LARGE = 1_000_000
const LOSSES: readonly Loss[] = ['nothing', 'everything', 'some', 'some']

describe('an append that hits an error', () => {
  test.each<[string, string, Parameters<Faults>[0][], 'io' | 'quota', boolean]>([
    ['a write that fails', 'EIO', ['write'], 'io', true],
    ['a full disk', 'ENOSPC', ['write'], 'quota', true],
    ['a sync that fails', 'EIO', ['datasync'], 'io', true],
    ['a disk that takes nothing any more', 'ENOSPC', ['write', 'datasync', 'open'], 'quota', false],
    ['a sync that fails, and no new file', 'EIO', ['datasync', 'open'], 'io', false],
    ['a sync that fails, and names that cannot be synced', 'EIO', ['datasync', 'sync'], 'io', false],
  ])(
    '%s: fails, and states whether anything was written',
    async (_, code, operations, kind, nothingWritten) => {
      const disk = new SimulatedDisk(new Prng(1))
      const session = await openSimulated(disk, LARGE)
      const writer = await LogWriter.create(session, 'a')
      await writer.append({ tag: 'before' })
      const before = writer.head
      const broken = new Set(operations)
      disk.faults = (operation) => {
        if (!broken.has(operation)) return undefined
        // A single operation fails once; of several, each fails every time.
        if (operations.length === 1) broken.delete(operation)
        return code
      }
      const error = await writer.append({ tag: 'failing' }).catch((failure: unknown) => failure)
      expect(error).toMatchObject({ kind, nothingWritten })
      expect(StorageFailure.is(error)).toBe(true)
      expect(await session.head('a')).toEqual(before)
      await expectRetry(session, disk, writer, before)
    },
  )

  test('fails the calls of its group and no later ones', async () => {
    const disk = new SimulatedDisk(new Prng(1))
    const session = await openSimulated(disk, LARGE)
    const writers = await Promise.all(['a', 'b'].map((logId) => LogWriter.create(session, logId)))
    let failures = 1
    disk.faults = (operation) => (operation === 'datasync' && failures-- > 0 ? 'EIO' : undefined)
    const results = await Promise.allSettled(writers.flatMap((writer) => [writer.append(), writer.append()]))
    expect(results.map(({ status }) => status)).toEqual(Array(4).fill('rejected'))
    for (const { logId } of writers) {
      const retry = new LogWriter(session, logId)
      await retry.append()
      checkRead(retry.written, WHOLE_LOG, await session.read(logId, WHOLE_LOG))
    }
  })

  test('fails conflicts that depend on the failed group', async () => {
    const disk = new SimulatedDisk(new Prng(1))
    const session = await openSimulated(disk, LARGE)
    await session.commit([{ kind: 'put', collection: 'streams', key: 'before', value: 1, expect: null }])
    const create = () =>
      session.commit([{ kind: 'put', collection: 'streams', key: 'a', value: 1, expect: null }])
    let failures = 1
    disk.faults = (operation) => (operation === 'datasync' && failures-- > 0 ? 'EIO' : undefined)
    const results = await Promise.allSettled([create(), create()])
    for (const result of results) {
      expect(result).toMatchObject({ status: 'rejected', reason: { kind: 'io', nothingWritten: true } })
    }
    await create()
    await expect(create()).rejects.toThrow('does not have the expected version')
  })

  test('writes nothing more until the failed write is undone', async () => {
    const disk = new SimulatedDisk(new Prng(1))
    const session = await openSimulated(disk, LARGE)
    const writer = await LogWriter.create(session, 'a')
    const { head } = writer
    disk.faults = (operation) => (['datasync', 'open'].includes(operation) ? 'EIO' : undefined)
    await expect(writer.append()).rejects.toMatchObject({ nothingWritten: false })
    const operations = disk.length
    await expect(new LogWriter(session, 'a', head).append()).rejects.toMatchObject({ nothingWritten: true })
    expect(disk.length).toBe(operations)
  })

  test('is not repaired by a later sync', async () => {
    const disk = new SimulatedDisk(new Prng(3))
    const session = await openSimulated(disk, LARGE)
    const writer = await LogWriter.create(session, 'a')
    let failures = 1
    disk.faults = (operation) => (operation === 'datasync' && failures-- > 0 ? 'EIO' : undefined)
    await writer.append({ bodyBytes: 5000 }).catch(() => {})
    const retry = new LogWriter(session, 'a')
    await retry.append({ tag: 'again' })
    const crashed = await openSimulated(disk.crashedAfter(disk.length, 'everything', new Prng(1)), LARGE)
    expect(await crashed.head('a')).toEqual(retry.head)
    checkRead(retry.written, WHOLE_LOG, await crashed.read('a', WHOLE_LOG))
  })
})

describe.each(Array.from({ length: byRun({ quick: 3, full: 10 }) }, (_, i) => i + 1))(
  'with errors at random (seed %i)',
  (seed) => {
    test('a failed append never appears in addition to its retry, after any crash', async () => {
      const prng = new Prng(seed)
      const disk = new SimulatedDisk(prng)
      const codes = ['EIO', 'ENOSPC']
      let faults = 0
      disk.faults = () => {
        if (disk.length < 10 || !prng.chance(0.06)) return undefined
        faults++
        return prng.pick(codes)
      }
      const history = await runWorkload(disk, prng, 2000)
      expect(faults).toBeGreaterThan(0)
      for (let count = 0; count <= disk.length; count += 1 + prng.below(3)) {
        const loss = prng.pick(LOSSES)
        const crashed = disk.crashedAfter(count, loss, new Prng(seed * 1000 + count))
        try {
          const session = await openSimulated(crashed, 2000)
          await checkRecovered(session, history, count)
          await session.close()
        } catch (error) {
          throw new Error(`after operation ${count}, losing ${loss}: ${(error as Error).message}`, {
            cause: error,
          })
        }
      }
    })
  },
)

async function expectRetry(
  session: StorageSession,
  disk: SimulatedDisk,
  failed: LogWriter,
  before: LogWriter['head'],
): Promise<void> {
  disk.faults = () => undefined
  const retry = new LogWriter(session, 'a', before, failed.written.slice(0, -1))
  await retry.append({ tag: 'again', count: 2 })
  checkRead(retry.written, WHOLE_LOG, await session.read('a', WHOLE_LOG))
  for (const loss of ['nothing', 'everything'] as const) {
    const crashed = await openSimulated(disk.crashedAfter(disk.length, loss, new Prng(1)), LARGE)
    expect(await crashed.head('a')).toEqual(retry.head)
    checkRead(retry.written, WHOLE_LOG, await crashed.read('a', WHOLE_LOG))
  }
}
