import { expect } from 'vitest'
import { checkRead, type ExpectedBlock, WHOLE_LOG } from '../../../adapters/conformance/blocks.ts'
import { LogWriter } from '../../../adapters/conformance/log-writer.ts'
import type { StorageSession } from '../../../src/storage/contract.ts'
import { type AppendAttempt, type Attempt, attemptOfHead, type History, type LogHistory } from './workload.ts'

/** Fails unless the storage holds a state that a crash after the first `count` operations may leave. */
export async function checkRecovered(
  session: StorageSession,
  history: History,
  count: number,
): Promise<void> {
  await checkDocuments(session, history, count)
  for (const log of history.logs) await checkLog(session, history, log, count)
}

/**
 * Fails unless each log is a prefix of what was written to it before the first `count` operations ended:
 * whole batches without a gap. Acknowledged ones may be missing at its end, as after a power failure with
 * durability `process-crash`.
 */
export async function checkPrefixes(session: StorageSession, history: History, count: number): Promise<void> {
  const other = (await session.get('streams', 'other'))?.value
  expect(other, 'documents that were written together').toBe((await session.get('streams', 'one'))?.value)
  for (const log of history.logs) await checkLog(session, history, log, count, true)
}

/** Checks that existing logs accept appends. */
export async function checkAcceptsAppends(session: StorageSession, history: History): Promise<void> {
  for (const { logId } of history.logs) {
    const head = await session.head(logId)
    if (head === undefined) continue
    const writer = new LogWriter(session, logId, head)
    const block = await writer.append({ count: 2, tag: 'after the crash' })
    expect(await session.head(logId)).toEqual(writer.head)
    const read = await session.read(logId, { ...WHOLE_LOG, from: { seqNum: block.firstSeqNum } })
    expect(read.at(-1)!.endSeqNum).toBe(block.endSeqNum)
  }
}

async function checkDocuments(session: StorageSession, { puts }: History, count: number): Promise<void> {
  const stored = (await session.get('streams', 'one'))?.value
  const other = (await session.get('streams', 'other'))?.value
  expect(other, 'documents that were written together').toBe(stored)
  const last = puts.findLast((attempt) => isDone(attempt, count))
  const found = puts.filter(({ value, deletes }) => (deletes ? undefined : value) === stored)
  if (stored !== undefined) expect(found.length, 'a document that was never written').toBe(1)
  const isFresh = found.some((attempt) => mayBeStored(attempt, count) && attempt.value >= (last?.value ?? 0))
  expect(
    isFresh || (stored === undefined && last === undefined),
    'a document that is lost, old or not written',
  ).toBe(true)
}

async function checkLog(
  session: StorageSession,
  { reclaims }: History,
  { logId, appends, deletion }: LogHistory,
  count: number,
  mayLose = false,
): Promise<void> {
  const head = await session.head(logId)
  const last = mayLose ? undefined : appends.findLast((attempt) => isDone(attempt, count))
  const document = await session.get('settings', logId)
  expect(document !== undefined, `${logId} and its document, which are created and deleted together`).toBe(
    head !== undefined,
  )
  if (head === undefined) {
    expect(await session.read(logId, WHOLE_LOG)).toEqual([])
    const isDeleted = deletion !== undefined && mayBeStored(deletion, count)
    expect(isDeleted || last === undefined, `${logId} is lost`).toBe(true)
    return
  }
  expect(!mayLose && deletion !== undefined && isDone(deletion, count), `${logId} is back`).toBe(false)
  const found = attemptOfHead(appends, head)
  expect(found?.head, `${logId} has a head that was never written`).toEqual(head)
  const attempts = withAncestors(found!)
  expect(
    attempts.every((attempt) => mayBeStored(attempt, count)),
    `${logId} has a record that was not written`,
  ).toBe(true)
  if (last !== undefined) expect(attempts.includes(last), `${logId} lost an acknowledged append`).toBe(true)

  const begun = reclaims.filter(({ calledAt }) => calledAt <= count)
  const now = Math.max(0, ...begun.map((limits) => limits.now))
  const trimmed = begun.length > 0 ? Math.max(...appends.map((attempt) => attempt.head.trimPoint)) : 0
  const expected = attempts.flatMap(({ blocks }) =>
    blocks.map((block): ExpectedBlock => {
      const isExpired = block.expiresAt !== null && block.expiresAt <= now
      return { block, mayBeFreed: isExpired || block.endSeqNum <= trimmed }
    }),
  )
  const blocks = await session.read(logId, WHOLE_LOG)
  checkRead(expected, WHOLE_LOG, blocks)
  const bytes = blocks.reduce((sum, { meteredBytes }) => sum + meteredBytes, 0)
  expect(await session.measure([logId]), `metered bytes of ${logId}`).toEqual([bytes])
}

/** The append and those before it. */
function withAncestors(attempt: AppendAttempt): AppendAttempt[] {
  const attempts: AppendAttempt[] = []
  for (let ancestor: AppendAttempt | undefined = attempt; ancestor !== undefined; ancestor = ancestor.parent)
    attempts.push(ancestor)
  return attempts.reverse()
}

function isDone({ outcome, settledAt: toldAt }: Attempt, count: number): boolean {
  return outcome === 'done' && toldAt <= count
}

/** Callers rely on errors which state that nothing was written. */
function mayBeStored({ outcome, calledAt, settledAt: toldAt }: Attempt, count: number): boolean {
  return calledAt <= count && !(outcome === 'not done' && toldAt <= count)
}
