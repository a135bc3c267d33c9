import type { AppendSession } from '../../src/api/append-session.ts'
import type { Stream } from '../../src/api/stream.ts'
import { isStreamMissing } from '../../src/model/errors.ts'
import { unlessAborted } from '../../src/runtime/abort.ts'
import { type CopyEnd, continuationOf, type FirstArrival } from '../../src/sync/copy-end.ts'
import { deleteIfPresent, earlierSegments, recordAt } from './copy-streams.ts'
import { ATTEMPTS_MAX, type LocalCopy } from './local-copy.ts'
import type { MirrorStart } from './mirror-start.ts'

/** An open copy. The session fails if the copy is deleted, even if another one is created meanwhile. */
interface OpenCopy {
  readonly session: AppendSession
  readonly end: CopyEnd
}

/** Opens a copy. Resolves to undefined if it is not the one with the identity. */
export async function openCopy(
  { existing }: LocalCopy,
  identity: string,
  signal: AbortSignal,
): Promise<OpenCopy | undefined> {
  let session: AppendSession | undefined
  try {
    // Opened first: it belongs to the stream that has the identity now, or to an earlier one.
    session = await existing.appendSession({ signal })
    if ((await existing.identity()) === identity) return { session, end: await endOf(existing, identity) }
  } catch (error) {
    session?.close().catch(() => {})
    if (isStreamMissing(error)) return undefined
    throw error
  }
  session.close().catch(() => {})
  return undefined
}

/** Deletes a copy and creates an empty one that begins with a sequence number. */
export async function replaceCopy(copy: LocalCopy, seqNum: number): Promise<void> {
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
    await deleteIfPresent(copy.existing)
    if (await copy.create(seqNum)) return
  }
}

async function endOf(copy: Stream, identity: string): Promise<CopyEnd> {
  const tail = await copy.checkTail()
  if (tail.seqNum === 0) return { tail, last: undefined }
  // Until it has a record of its own, a copy continues the earlier records before it, if there are any.
  const segments = tail.timestamp === 0 ? await earlierSegments(copy, identity) : []
  const segment = segments.find(({ end }) => end === tail.seqNum)
  const { timestamp } = segment ?? tail
  const last = await recordAt(segment?.stream ?? copy, tail.seqNum - 1)
  return { tail: { ...tail, timestamp }, last }
}

/** Returns the query of a read from where a copy begins, without an end. */
export function startQuery(from: MirrorStart) {
  const isGiven = Object.values(from).some((value) => value !== undefined)
  return { ...(isGiven ? from : { seqNum: 0 }), clamp: true, waitMs: Number.POSITIVE_INFINITY }
}

/** Resolves to the sequence number with which a copy begins: that of a record, or of the tail. */
export async function copyStart(remote: Stream, from: MirrorStart, signal: AbortSignal): Promise<number> {
  const { records, tail } = await firstArrival(remote, startQuery(from), signal)
  return records[0]?.seqNum ?? tail?.seqNum ?? 0
}

/** Resolves to whether a remote stream continues a copy, rather than being another one. */
export async function isContinued(
  copy: Stream,
  identity: string,
  remote: Stream,
  signal: AbortSignal,
): Promise<boolean> {
  const end = await endOf(copy, identity)
  if (end.tail.seqNum === 0) return true
  const first = await firstArrival(remote, startQuery({ seqNum: end.tail.seqNum - 1 }), signal)
  return continuationOf(end, first).kind === 'same'
}

async function firstArrival(
  remote: Stream,
  query: ReturnType<typeof startQuery>,
  signal: AbortSignal,
): Promise<FirstArrival> {
  const opening = remote.openCursor(query, { heartbeats: true, allowsEmpty: 'always' })
  const cursor = await unlessAborted(signal, opening, (late) => late?.close())
  try {
    const event = await unlessAborted(signal, Promise.resolve(cursor?.next()))
    return event?.kind === 'batch' ? event.batch : { records: [], tail: event?.tail }
  } finally {
    cursor?.close()
  }
}
