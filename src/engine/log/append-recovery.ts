import { type Attempt, resolveAttempts } from '../../core/resolve-attempts.ts'
import type { HeadwaterError } from '../../model/errors.ts'
import type { Head } from '../../storage/contract.ts'
import { identityOf, isSameHead } from '../../storage/heads.ts'
import {
  type AppendEntry,
  type AppendState,
  type AppendTarget,
  DISCARDED,
  QUEUED,
  rejectAppend,
  settleAppends,
} from './append-entry.ts'
import { conflictError, deletedError, fromStorage, withoutEffects } from './errors.ts'

const CONFLICTS_MAX = 100

/**
 * Recovers a pipeline after a conflict or a failure, when no write is in flight: settles the appends with a
 * known outcome, reads the head again, and leaves in `entries` those to sequence again, all queued. Appends
 * that are added to `entries` meanwhile stay behind them. Resolves to false, leaving none, if the head could
 * not be read.
 */
export async function recoverAppends(
  entries: AppendEntry[],
  target: AppendTarget,
  shared: boolean,
): Promise<boolean> {
  // A caller whose append fails may read at once, and finds what was stored.
  target.markStale()
  settleKnownOutcomes(entries, target, shared)
  // Before the head is read: it may be older than appends that are added meanwhile.
  for (const entry of entries) entry.sawReload = true
  const failure = await reloadFailure(target)
  if (failure !== undefined) {
    // None of them was written.
    for (const entry of entries.splice(0)) rejectAppend(entry, withoutEffects(failure))
    return false
  }
  settleRefusals(entries, target.head)
  requeue(entries)
  return true
}

async function reloadFailure(target: AppendTarget): Promise<HeadwaterError | undefined> {
  try {
    return (await target.reload()) ? undefined : deletedError()
  } catch (error) {
    return fromStorage(error)
  }
}

/** Removes and settles, wherever they stand, the appends whose outcome is known. */
function settleKnownOutcomes(entries: AppendEntry[], target: AppendTarget, shared: boolean): void {
  const outcomes = resolveAttempts(entries.map(attemptOf), shared)
  const known: AppendEntry[] = []
  let failure: (AppendState & { readonly kind: 'failed' }) | undefined
  const unknown = entries.filter((entry, index) => {
    const outcome = outcomes[index]!
    if (outcome === 'retry') return true
    const { state } = entry
    if (outcome === 'acknowledge' && state.kind === 'failed') {
      entry.state = state.attempt
      entry.state.kind = 'written'
    } else if (outcome === 'fail') {
      if (state.kind === 'failed') failure = state
      // It conflicted because of the failure.
      else if (failure !== undefined) entry.state = { ...failure, error: withoutEffects(failure.error) }
    } else if (outcome === 'discard') {
      entry.state = DISCARDED
    }
    // Before any is settled: a rejected caller may append to its group at once.
    if ('error' in entry.state) entry.group?.fail(entry.state.error)
    known.push(entry)
    return false
  })
  entries.splice(0, entries.length, ...unknown)
  settleAppends(known, target)
}

function attemptOf({ state, group }: AppendEntry): Attempt {
  return {
    // No write is in flight, so none is `writing`.
    kind: state.kind === 'writing' ? 'queued' : state.kind,
    isFinal: 'isFinal' in state && state.isFinal,
    group,
    groupHasFailed: group?.failed,
  }
}

/**
 * Rejects the refused appends at the front, as long as the storage has the head that they were refused
 * against.
 */
function settleRefusals(entries: AppendEntry[], head: Head): void {
  for (let first = entries[0]; first?.state.kind === 'refused'; first = entries[0]) {
    if (!isSameHead(identityOf(first.state.against), identityOf(head))) return
    entries.shift()
    rejectAppend(first, first.state.error)
  }
}

function requeue(entries: AppendEntry[]): void {
  const overtaken = entries.findIndex(({ state }) => state.kind === 'conflicted')
  for (const entry of entries) {
    entry.group?.reconsider(entry)
    entry.state = QUEUED
  }
  const first = entries[overtaken]
  if (first === undefined || ++first.conflicts < CONFLICTS_MAX) return
  entries.splice(overtaken, 1)
  rejectAppend(first, conflictError())
}
