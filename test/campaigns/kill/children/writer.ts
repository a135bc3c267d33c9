import { writeSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { setImmediate } from 'node:timers/promises'
import { lockDirectory } from '../../../../adapters/storage/filesystem/lock/directory-lock.ts'
import { systemClock } from '../../../../src/runtime/clock.ts'
import type { Head, StorageSession } from '../../../../src/storage/contract.ts'
import { emptyHead, identityOf } from '../../../../src/storage/heads.ts'
import { hookedFiles } from '../../../storage/filesystem/hooked-files.ts'
import { openFiles } from '../../../storage/filesystem/open-files.ts'
import { blockAt, headAfter, LARGE_BLOCK_BYTES, LOG_IDS, ROLL_BYTES } from './blocks.ts'

/**
 * Performs all operations concurrently until it is killed, and prints each acknowledgement. If a file
 * operation is given, it kills itself before that operation, after the given number of matches.
 */
const [directory = '', round = '', durability = 'power-loss', killedAt = '', killedAfter = '0'] =
  process.argv.slice(2)
const IN_FLIGHT = 3
let left = Number(killedAfter)
const print = (line: string): void => void writeSync(1, `${line}\n`)

await mkdir(directory, { recursive: true })
// Waits for its turn, because starting takes longer than being killed.
process.stdin.once('data', () => void run())

async function run(): Promise<void> {
  const owned = await lockDirectory(directory, systemClock)
  const files = hookedFiles(owned.files, (operation, name, mode) => {
    if (killedAt === '' || !new RegExp(killedAt).test(`${operation} ${name} ${mode}`)) return
    if (left-- === 0) process.kill(process.pid, 'SIGKILL')
  })
  const options = {
    durability: durability as 'power-loss' | 'process-crash',
    rollBytes: ROLL_BYTES,
    largeBlockBytes: LARGE_BLOCK_BYTES,
  }
  const session = await openFiles(files, options, owned.release)
  print('open')
  const writers = LOG_IDS.map((logId) => write(session, logId))
  await Promise.all([...writers, writeDocuments(session), createAndDelete(session), free(session)])
}

async function write(session: StorageSession, logId: string): Promise<void> {
  let head = await session.head(logId)
  if (head === undefined) {
    await session.commit([{ kind: 'create-log', logId, epoch: 1, createdAt: 0 }])
    head = emptyHead(1, 0)
  }
  const calls: Promise<void>[] = []
  for (;;) {
    const block = blockAt(logId, head.tail.seqNum)
    const next: Head = headAfter(head)
    const call = session.append({ logId, expected: identityOf(head), block, head: next })
    calls.push(call.then(() => print(`${logId} ${block.endSeqNum}`)))
    head = next
    if (calls.length === IN_FLIGHT) await calls.shift()
  }
}

async function writeDocuments(session: StorageSession): Promise<void> {
  const stored = (await session.get('streams', 'one'))?.value ?? 0
  for (let serial = Number(stored) + 1; ; serial++) {
    await session.commit([
      { kind: 'put', collection: 'streams', key: 'one', value: serial },
      { kind: 'put', collection: 'streams', key: 'other', value: serial },
    ])
    print(`document ${serial}`)
  }
}

/** Logs with a document. Every third of them stays. */
async function createAndDelete(session: StorageSession): Promise<void> {
  for (let serial = 0; ; serial++) {
    const logId = `short-${round}-${serial}`
    print(`creating ${logId}`)
    await session.commit([
      { kind: 'create-log', logId, epoch: 1, createdAt: 0 },
      { kind: 'put', collection: 'settings', key: logId, value: serial },
    ])
    print(`created ${logId}`)
    const head = emptyHead(1, 0)
    const block = blockAt(logId, 0)
    await session.append({ logId, expected: identityOf(head), block, head: headAfter(head) })
    if (serial % 3 === 0) continue
    print(`deleting ${logId}`)
    await session.commit([
      { kind: 'delete-log', logId },
      { kind: 'delete', collection: 'settings', key: logId },
    ])
    print(`deleted ${logId}`)
  }
}

async function free(session: StorageSession): Promise<void> {
  for (;;) {
    await session.reclaim({ now: 1, trimmedBefore: 0, blocksMax: 50 })
    // With nothing to free, `reclaim` does not wait for anything.
    await setImmediate()
  }
}
