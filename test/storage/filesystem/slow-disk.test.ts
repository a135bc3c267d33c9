import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { checkRead, type ExpectedBlock, NOW, WHOLE_LOG } from '../../../adapters/conformance/blocks.ts'
import { LogWriter } from '../../../adapters/conformance/log-writer.ts'
import { Prng } from '../../../src/runtime/random.ts'
import type { ReadRange, StorageSession } from '../../../src/storage/contract.ts'
import { hookedFiles } from './hooked-files.ts'
import { SimulatedDisk } from './simulated-disk.ts'
import { openSimulated } from './workload.ts'

const SEEDS = [
  [1, 'power-loss'],
  [2, 'process-crash'],
] as const
const APPENDS = 10

/** Whatever happens between two reads of one call, the call returns all records that were not freed. */
test.each(SEEDS)(
  'reads correctly on a slow disk during appends, reclaims, rolls and compactions (seed %i, %s)',
  { tags: ['slow'] },
  async (seed, durability) => {
    const prng = new Prng(seed)
    const disk = new SimulatedDisk(prng)
    const files = hookedFiles(disk, (operation) => eventLoopTurns(prng.below(operation === 'read' ? 6 : 3)))
    const rollBytes = prng.pick([1_500, 4_000, 15_000])
    const session = await openSimulated(files, rollBytes, durability)
    const calls = new ConcurrentCalls(session, prng)
    const writers = await Promise.all(['a', 'b', 'c'].map((logId) => LogWriter.create(session, logId)))
    const background = [...writers, ...writers].map((writer) => calls.read(writer))
    background.push(calls.reclaim())
    await Promise.all(writers.map((writer) => calls.write(writer))).finally(() => calls.end())
    await Promise.all(background)
    for (const writer of writers) await calls.check(session, writer)
    await session.close()
    for (const loss of durability === 'power-loss' ? (['nothing', 'everything', 'some'] as const) : []) {
      const reopened = await openSimulated(disk.crashedAfter(disk.length, loss, new Prng(seed)), rollBytes)
      for (const writer of writers) await calls.check(reopened, writer)
      await reopened.close()
    }
  },
)

/** What made a segment unused is durable before it is removed, also if a group is just written without a sync. */
test('removes no segment before its deletion is durable, with process-crash', async () => {
  const prng = new Prng(1)
  const disk = new SimulatedDisk(prng)
  let isHeld = false
  let isWriting = false
  const files = hookedFiles(disk, async (operation, name) => {
    if (operation !== 'write' || !name.startsWith('journal')) return
    isWriting = isHeld
    while (isHeld) await eventLoopTurns(1)
  })
  const session = await openSimulated(files, 3_000, 'process-crash')
  const [deleted, other] = [await LogWriter.create(session, 'a'), await LogWriter.create(session, 'b')]
  while (!disk.names.includes('segment-0000000001')) await deleted.append({ bodyBytes: 500 })
  while (disk.names.includes('journal-0000000001')) await eventLoopTurns(1)
  await session.commit([{ kind: 'delete-log', logId: 'a' }])
  isHeld = true
  const appended = other.append()
  while (!isWriting) await eventLoopTurns(1)
  const reclaimed = session.reclaim({ now: NOW, trimmedBefore: NOW, blocksMax: 10 })
  await eventLoopTurns(10)
  isHeld = false
  await Promise.all([appended, reclaimed])
  expect(disk.names).not.toContain('segment-0000000001')
  const reopened = await openSimulated(disk.crashedAfter(disk.length, 'everything', prng), 3_000)
  expect(await reopened.head('a')).toBeUndefined()
  await reopened.close()
})

class ConcurrentCalls {
  readonly #session: StorageSession
  readonly #prng: Prng
  readonly #acknowledged = new Set<ExpectedBlock>()
  #now = NOW
  #isOver = false

  constructor(session: StorageSession, prng: Prng) {
    this.#session = session
    this.#prng = prng
  }

  end(): void {
    this.#isOver = true
  }

  async write(writer: LogWriter): Promise<void> {
    const prng = this.#prng
    for (let i = 0; i < APPENDS; i++) {
      const { head } = writer
      const trimPoint = Math.max(head.trimPoint, prng.below(head.tail.seqNum + 1))
      await writer.append({
        count: 1 + prng.below(3),
        bodyBytes: prng.below(200),
        expiresAt: prng.pick([null, null, this.#now + 1 + prng.below(60)]),
        ...(prng.chance(0.1) ? { trimPoint, trimmedAt: NOW } : {}),
      })
      this.#acknowledged.add(writer.written.at(-1)!)
    }
  }

  async read(writer: LogWriter): Promise<void> {
    while (!this.#isOver) {
      const acknowledged = new Set(writer.written.filter((expected) => this.#acknowledged.has(expected)))
      const range = this.#range(writer.head.tail.seqNum)
      const blocks = await this.#session.read(writer.logId, range)
      checkRead(this.#expected(writer, acknowledged), range, blocks)
      await eventLoopTurns(1)
    }
  }

  async reclaim(): Promise<void> {
    while (!this.#isOver) {
      this.#now += this.#prng.below(4)
      const blocksMax = 1 + this.#prng.below(30)
      await this.#session.reclaim({ now: this.#now, trimmedBefore: NOW, blocksMax })
      await eventLoopTurns(this.#prng.below(10))
    }
  }

  async check(session: StorageSession, writer: LogWriter): Promise<void> {
    const blocks = await session.read(writer.logId, WHOLE_LOG)
    checkRead(this.#expected(writer, this.#acknowledged), WHOLE_LOG, blocks)
    const meteredBytes = blocks.reduce((sum, block) => sum + block.meteredBytes, 0)
    expect(await session.measure([writer.logId])).toEqual([meteredBytes])
  }

  #range(tail: number): ReadRange {
    const prng = this.#prng
    const seqNum = prng.below(tail + 1)
    return {
      from: prng.chance(0.8) ? { seqNum } : { timestamp: NOW + seqNum },
      endSeqNum: prng.chance(0.3) ? prng.below(tail + 2) : Number.MAX_SAFE_INTEGER,
      bytesMax: prng.pick([1, 300, 1_500, 5_000, 1_000_000_000]),
    }
  }

  #expected(writer: LogWriter, acknowledged: ReadonlySet<ExpectedBlock>): ExpectedBlock[] {
    return writer.written.map((expected) => {
      const { block } = expected
      const isExpired = block.expiresAt !== null && block.expiresAt <= this.#now
      const mayBeFreed = !acknowledged.has(expected) || isExpired || block.endSeqNum <= writer.head.trimPoint
      return { block, mayBeFreed }
    })
  }
}

/** Waits for a number of turns of the event loop. */
async function eventLoopTurns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await setImmediate()
}
