import { expect, test } from 'vitest'
import { LogWriter, NOW } from '../../../../adapters/conformance/log-writer.ts'
import { Prng } from '../../../../src/runtime/prng.ts'
import type { StorageSession } from '../../../../src/storage/contract.ts'
import { type Hook, hookedFiles, systemError } from '../hooked-files.ts'
import { SimulatedDisk } from '../simulated-disk.ts'
import { openSimulated } from '../workload.ts'

const RECLAIM = { now: NOW, trimmedBefore: NOW, blocksMax: 1000 }

test('a compaction that cannot create its segment does not prevent removals', async () => {
  const { disk, session, fail, makeCompactionDue } = await withSegments()
  const failed = fail((operation, name, mode) => {
    return operation === 'open' && mode === 'create' && name.startsWith('segment')
  })
  await makeCompactionDue()
  await commitUntil(session, () => failed() > 0)
  await expectAllRemoved(session, disk, fail)
})

test('a compaction that cannot be committed leaves no segment', async () => {
  const { disk, session, fail, makeCompactionDue } = await withSegments()
  const before = new Set(disk.names)
  const isMerged = () => disk.names.some((name) => /^segment-\d+$/.test(name) && !before.has(name))
  const failed = fail((operation, name) => isMerged() && operation === 'write' && name.startsWith('journal'))
  await makeCompactionDue()
  await commitUntil(session, () => failed() > 0)
  await expectAllRemoved(session, disk, fail)
})

test('a failed removal of a segment is retried', async () => {
  const { disk, session, fail } = await withSegments()
  const failed = fail((operation, name) => operation === 'unlink' && name.startsWith('segment'))
  await session.commit(['a', 'b'].map((logId) => ({ kind: 'delete-log', logId })))
  await commitUntil(session, () => failed() > 0)
  await expectAllRemoved(session, disk, fail)
})

async function expectAllRemoved(
  session: StorageSession,
  disk: SimulatedDisk,
  fail: (isFailing: Hook) => void,
): Promise<void> {
  fail(() => false)
  await session.commit(['a', 'b'].map((logId) => ({ kind: 'delete-log', logId })))
  await commitUntil(session, () => !disk.names.some((name) => name.startsWith('segment')))
  await session.close()
}

/** Two logs with several segments, whose compaction becomes due. */
async function withSegments() {
  const disk = new SimulatedDisk(new Prng(1))
  let isFailing: Hook = () => false
  let failures = 0
  const files = hookedFiles(disk, (...operation) => {
    if (!isFailing(...operation)) return
    failures++
    throw systemError('ENOSPC')
  })
  /** Injects failures, and returns a function that counts them. */
  const fail = (next: Hook): (() => number) => {
    isFailing = next
    failures = 0
    return () => failures
  }
  const session = await openSimulated(files, 5000)
  const writers = await Promise.all(['a', 'b'].map((logId) => LogWriter.create(session, logId)))
  const segments = () => disk.names.filter((name) => /^segment-\d+$/.test(name))
  while (segments().length < 3) for (const writer of writers) await writer.append({ bodyBytes: 300 })
  const makeCompactionDue = async (): Promise<void> => {
    const [writer] = writers
    await writer!.append({ trimPoint: writer!.head.tail.seqNum, trimmedAt: NOW, bodyBytes: 1 })
    await session.reclaim(RECLAIM).catch(() => {})
  }
  return { disk, session, fail, makeCompactionDue }
}

/** Commits until the condition holds, whether the commits succeed or fail. */
async function commitUntil(session: StorageSession, condition: () => boolean): Promise<void> {
  for (let i = 0; !condition(); i++) {
    expect(i, 'commits without effect').toBeLessThan(2000)
    await session.commit([{ kind: 'put', collection: 'settings', key: 'k', value: i }]).catch(() => {})
  }
}
