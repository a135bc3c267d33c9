import type { StreamContext } from '../../api/append-session.ts'
import { HeadwaterError } from '../../model/errors.ts'
import { SharedSignal, unlessAborted } from '../../runtime/abort.ts'
import { offsetClock } from '../../runtime/clock.ts'
import { Tokens } from '../access/tokens.ts'
import { acquireSession, type EngineContext } from '../context.ts'
import { closedError } from '../errors.ts'
import { ReadBudget } from '../log/read-budget.ts'
import type { EngineSettings } from '../options.ts'
import { Admission } from '../service/admission.ts'
import { AppendService } from '../service/append-service.ts'
import { BackgroundWork } from '../service/background.ts'
import { BasinService } from '../service/basin-service.ts'
import { ConfirmedClock } from '../service/confirmed-clock.ts'
import { Deadlines } from '../service/deadlines.ts'
import { StreamBuilder } from '../service/fork.ts'
import { ReadService } from '../service/read-service.ts'
import { StreamService } from '../service/stream-service.ts'
import { Catalog } from '../streams/catalog.ts'
import { StreamCreator } from '../streams/create.ts'
import { StreamTable } from '../streams/table.ts'

/** Counts of what is open in an engine. */
export interface EngineStats {
  /** Reads and append sessions, as limited by `limits.openSessions`. */
  readonly openSessions: number
  /** Read sessions and unary reads. */
  readonly openReads: number
  /** Reads that wait at the tail for a record. */
  readonly waitingReads: number
  /** Bytes that open reads hold, of `limits.readBufferBytes`; an estimate. */
  readonly readBufferBytes: number
  /** Appends that have not settled. */
  readonly pendingAppends: number
  /** Metered bytes of the appends in flight. */
  readonly appendBytesInFlight: number
  /** Appends that wait for bytes in flight. */
  readonly waitingAppends: number
  /** Metered bytes of the appends that are not in flight. */
  readonly waitingAppendBytes: number
  readonly cachedStreams: number
  /**
   * Whether an append failed with `storage_full`, and none as large has succeeded since, as far as the
   * storage knows. Reads, trims and deletions still work.
   */
  readonly storageFull: boolean
  /**
   * How far the clock of the storage is ahead of that of this process, in milliseconds; 0 if it has none. The
   * engine uses the time of the storage.
   */
  readonly clockOffsetMs: number
  /** Whether expired records are kept until it is certain that the clock is right (docs/guarantees.md). */
  readonly expiryPaused: boolean
  /** Streams of which the storage has lost confirmed records, as a lagging replica does that takes over. */
  readonly lostTails: number
}

/** The services that the handles of an engine use. Handles are cheap and have no state of their own. */
export type EngineServices = Awaited<ReturnType<typeof openServices>>

/** Opens the storage, and constructs everything that works on it. */
export async function openServices(settings: EngineSettings, signal: AbortSignal | undefined) {
  const { storage, limits, trimGraceMs, onBackgroundError } = settings
  const { shared, notifications } = storage.manifest
  /** The storage may report changes while it opens. */
  let opened: StreamTable | undefined
  signal?.throwIfAborted()
  const opening = acquireSession(storage, {
    clock: settings.clock,
    onLogChanged: (logId) => opened?.hint(logId),
    onHistoryChanged: () => opened?.historyChanged(),
    onBackgroundError,
  })
  const session = await unlessAborted(signal, opening, (late) => late.close())
  // The time of the storage, if it has a clock that the engines share.
  const { clockOffsetMs } = session
  const clock = clockOffsetMs === undefined ? settings.clock : offsetClock(settings.clock, clockOffsetMs)
  const usage = settings.usage.open({ session, clock, onBackgroundError })
  const closing = new SharedSignal()
  const context: EngineContext = { ...settings, session, clock, usage, closing }

  const catalog = new Catalog(context)
  const admission = new Admission(limits)
  const readBudget = new ReadBudget(limits.readBufferBytes, clock)
  const confirmedClock = new ConfirmedClock(context)
  const work = new BackgroundWork({ ...context, confirmedClock })
  let lostTails = 0
  const table: StreamTable = new StreamTable({
    ...context,
    shared,
    isShared: () => shared && session.isExclusive?.() !== true,
    notifications,
    loadDocument: (basin, stream) => deadlines.find({ basin, stream }).then((found) => found?.value),
    isOverdue: (log) => deadlines.isOverdue(log),
    onTrim: () => work.reclaimAt(clock.now() + trimGraceMs),
    onLost: ({ document: { basin, name }, loss }) => {
      lostTails++
      const message = `stream \`${name}\` in basin \`${basin}\`: ${loss?.message}`
      onBackgroundError(new HeadwaterError('storage', message))
    },
    create: (ref, purpose, policy) => creator.createOnUse(ref, purpose, policy),
  })
  opened = table
  const deadlines: Deadlines = new Deadlines({
    ...context,
    catalog,
    confirmedClock,
    remove: (commit, stream, condition) => streams.remove(commit, stream, condition),
  })
  const appends = new AppendService({ ...context, table, admission, work })
  const reads = new ReadService({ ...context, table, admission, readBudget, deadlines })
  const creator = new StreamCreator({ ...context, catalog })
  const builder = new StreamBuilder({ ...context, catalog, creator, table, reads, deadlines })
  const parts = { catalog, table, creator, builder, deadlines, work }
  const streams: StreamService = new StreamService({ ...context, ...parts })
  const basins = new BasinService({ ...context, catalog, streams })
  const tokens = new Tokens({ ...context, catalog })

  const closeAll = async () => {
    // Producers send what they have collected.
    closing.abort(closedError())
    reads.close()
    await table.close(admission.close())
    await work.close()
    await usage.close()
    tokens.close()
    await deadlines.recorded
    await session.close()
  }
  let closed: Promise<void> | undefined
  const close = () => {
    closed ??= closeAll()
    return closed
  }
  work.start([
    () => deadlines.checkDue(),
    () => basins.finishDeletions(),
    async () => tokens.deleteExpired(await confirmedClock.now()),
  ])
  const stats = (): EngineStats => {
    const logs = [...table.all()]
    return {
      openSessions: admission.openSessions,
      openReads: reads.openReads,
      waitingReads: logs.reduce((sum, log) => sum + log.waiting, 0),
      readBufferBytes: readBudget.used,
      pendingAppends: logs.reduce((sum, log) => sum + log.pendingAppends, 0),
      appendBytesInFlight: admission.inFlightBytes,
      waitingAppends: admission.waitingAppends,
      waitingAppendBytes: admission.waitingBytes,
      cachedStreams: logs.length,
      storageFull: session.isFull?.() ?? false,
      clockOffsetMs: clockOffsetMs?.() ?? 0,
      expiryPaused: confirmedClock.isPaused,
      lostTails,
    }
  }
  /** The context of the methods of streams that build on others. */
  const streamContext: StreamContext = { reserve: (bytes) => admission.reserve(bytes), clock, closing }
  return {
    ...context,
    basins,
    streams,
    admission,
    appends,
    reads,
    readBudget,
    tokens,
    streamContext,
    /** Resolves when the storage answers. */
    checkStorage: async () => void (await (session.check?.() ?? session.get('settings', ''))),
    stats,
    close,
  }
}
