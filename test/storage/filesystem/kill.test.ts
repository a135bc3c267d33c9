import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openDirectory } from '../../../adapters/storage/filesystem/open-directory.ts'
import { systemClock } from '../../../src/engine/system-clock.ts'
import { encodeRecords } from '../../../src/storage/block-codec.ts'
import { WHOLE_LOG } from '../../../src/storage/conformance/log-writer.ts'
import { Prng } from '../../../src/storage/conformance/prng.ts'
import type { StorageSession } from '../../../src/storage/contract.ts'
import { Child, childProgram } from './child-process.ts'
import { LARGE_BLOCK_BYTES, LOG_IDS, ROLL_BYTES, recordOf } from './children/records.ts'
import { temporaryDirectory } from './directories.ts'

const ROUNDS = Number(process.env.KILL_ROUNDS ?? '30')

test(`${ROUNDS} processes that are killed while they write leave all that they acknowledged`, async () => {
  const prng = new Prng(1)
  const base = await temporaryDirectory()
  const directory = join(base, 'data')
  const program = await childProgram('writer', base)
  let rolled = false
  let adopted = 0
  for (let round = 0; round < ROUNDS; round++) {
    const child = new Child(program, [directory, round % 2 === 0 ? 'sync' : 'os'])
    await child.told(1 + prng.below(1000))
    await child.kill()
    expect(child.lines.length, 'acknowledgements').toBeGreaterThan(0)

    adopted += await adoptedIn(directory)
    const options = { rollBytes: ROLL_BYTES, largeBlockBytes: LARGE_BLOCK_BYTES }
    const session = await openDirectory(directory, { durability: 'sync', ...options }, systemClock)
    await checkDocuments(session)
    for (const logId of LOG_IDS) await checkLog(session, logId, acknowledged(child.lines, logId))
    await session.close()
    rolled ||= child.lines.length * 100 > ROLL_BYTES
  }
  expect(rolled, 'journals were rolled').toBe(true)
  expect(adopted, 'adopted journals').toBeGreaterThan(0)
}, 600_000)

/** Segments that begin as journals do. */
async function adoptedIn(directory: string): Promise<number> {
  const segments = (await readdir(directory)).filter((name) => /^segment-\d+$/.test(name))
  const contents = await Promise.all(segments.map((name) => readFile(join(directory, name))))
  return contents.filter((content) => content.toString('latin1', 0, 5) === 'HDWRJ').length
}

function acknowledged(lines: readonly string[], logId: string): number {
  const last = lines.findLast((line) => line.startsWith(`${logId} `))
  return last === undefined ? 0 : Number(last.split(' ')[1])
}

async function checkDocuments(session: StorageSession): Promise<void> {
  const values = await Promise.all(['one', 'other'].map((key) => session.get('streams', key)))
  expect(values[0]?.value).toBe(values[1]?.value)
}

async function checkLog(session: StorageSession, logId: string, atLeast: number): Promise<void> {
  const tail = (await session.head(logId))?.tail.seqNum ?? 0
  expect(tail, `tail of ${logId}`).toBeGreaterThanOrEqual(atLeast)
  const blocks = await session.read(logId, WHOLE_LOG)
  let next = 0
  for (const block of blocks) {
    // What is missing has expired: it began at a multiple of 3.
    for (; next < block.firstSeqNum; next += 1 + (next % 4)) expectExpired(logId, next)
    expect(block.firstSeqNum).toBe(next)
    const count = block.endSeqNum - next
    const records = Array.from({ length: count }, (_, i) => recordOf(logId, next + i))
    expect(Buffer.compare(block.data, encodeRecords(records)), `${logId} at ${next}`).toBe(0)
    next = block.endSeqNum
  }
  for (; next < tail; next += 1 + (next % 4)) expectExpired(logId, next)
  expect(next).toBe(tail)
  const bytes = blocks.reduce((sum, { meteredBytes }) => sum + meteredBytes, 0)
  expect(await session.measure([logId])).toEqual([bytes])
}

function expectExpired(logId: string, seqNum: number): void {
  if (seqNum % 3 !== 0) throw new Error(`${logId} lost record ${seqNum}`)
}
