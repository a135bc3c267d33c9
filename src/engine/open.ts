import { HeadwaterError } from '../model/errors.ts'
import { onAbort, SharedSignal, unlessAborted } from '../runtime/abort.ts'
import { type Clock, offsetClock } from '../runtime/clock.ts'
import type { StorageSession } from '../storage/contract.ts'
import { Caller } from './access/caller.ts'
import { Tokens } from './access/tokens.ts'
import { Engine } from './api/engine.ts'
import { acquireSession, closedError } from './errors.ts'
import { ReadBudget } from './log/read-budget.ts'
import { engineSettings, type OpenOptions } from './options.ts'
import { Admission } from './service/admission.ts'
import { AppendService } from './service/append-service.ts'
import { BackgroundWork } from './service/background.ts'
import { BasinService } from './service/basin-service.ts'
import { Deadlines, firstDeadlines } from './service/deadlines.ts'
import { ReadService } from './service/read-service.ts'
import { ConfirmedClock, reclaim } from './service/reclaim.ts'
import { statsOf } from './service/stats.ts'
import { StreamChanges } from './service/stream-changes.ts'
import { StreamService } from './service/stream-service.ts'
import { Catalog } from './streams/catalog.ts'
import { StreamCreator } from './streams/create.ts'
import { StreamBuilder } from './streams/fork.ts'
import { StreamTable } from './streams/table.ts'

/**
 * Opens an engine on a storage.
 *
 * ```ts
 * const hw = await open({ storage: memory() })
 * const chat = hw.basin('my-app').stream('chats/42')
 * await chat.append('hello')
 * ```
 *
 * Errors: `storage` when the storage cannot be opened; `invalid` for invalid options.
 */
export async function open(options: OpenOptions): Promise<Engine> {
  const settings = engineSettings(options)
  const { storage, random, limits, trimGraceMs, ciphers, onBackgroundError } = settings
  const { shared, notifications } = storage.manifest
  const closing = new SharedSignal()
  let hint = (_logId: string): void => {}
  let onHistoryChanged = (): void => {}
  const { signal } = options
  signal?.throwIfAborted()
  const opening = acquireSession(storage, {
    clock: settings.clock,
    onLogChanged: (logId) => hint(logId),
    onHistoryChanged: () => onHistoryChanged(),
    onBackgroundError,
  })
  const session = await unlessAborted(signal, opening, (late) => late.close())
  const clock = clockOf(settings.clock, session)
  let lostTails = 0
  const usage = settings.usage.open({ session, clock, onBackgroundError })
  const catalog = new Catalog({ session, clock, onBackgroundError, closing })
  const readBudget = new ReadBudget(limits.readBufferBytes, clock)
  const work = new BackgroundWork({
    electForBackgroundWork: session.electForBackgroundWork,
    usage,
    isInUse: () => table.hasFollowers,
    clock,
    random,
    onBackgroundError,
  })
  const isShared = () => shared && session.isExclusive?.() !== true
  const table: StreamTable = new StreamTable({
    session,
    clock,
    limits,
    shared,
    isShared,
    notifications,
    newAppendId: settings.newAppendId,
    trimGraceMs,
    loadDocument: (basin, stream) => deadlines.find({ basin, stream }).then((found) => found?.value),
    isOverdue: (log) => deadlines.isOverdue(log),
    codecFor: (document) => ciphers.codecFor(document),
    onTrim: () => work.reclaimAt(clock.now() + trimGraceMs),
    onFollow: () => work.stayInMemory(),
    onLost: ({ document: { basin, name }, loss }) => {
      lostTails++
      onBackgroundError(
        new HeadwaterError('storage', `stream \`${name}\` in basin \`${basin}\`: ${loss?.message}`),
      )
    },
    create: (ref, purpose, policy) => creator.createOnUse(ref, purpose, policy),
    closing,
    onBackgroundError,
  })
  hint = (logId) => {
    if (!closing.aborted) table.hint(logId)
  }
  onHistoryChanged = () => {
    if (!closing.aborted) table.historyChanged()
  }
  const { newId } = settings
  const creator = new StreamCreator({ catalog, usage, clock, newId, firstDeadlines })
  const confirmedClock = new ConfirmedClock(session, clock, onBackgroundError)
  const changes = new StreamChanges({ session, table, usage, work, clock })
  const deadlines = new Deadlines({ session, catalog, changes, clock, confirmedClock, onBackgroundError })
  const admission = new Admission(limits)
  const appends = new AppendService({ table, admission, usage, work, clock, onBackgroundError })
  const reads = new ReadService({
    table,
    admission,
    readBudget,
    usage,
    deadlines,
    clock,
    random,
    trimGraceMs,
    closing,
  })
  const checkCipher = ciphers.check.bind(ciphers)
  const basins = new BasinService({ session, catalog, changes, usage, work, clock, checkCipher, closing })
  const find = deadlines.find.bind(deadlines)
  const builder = new StreamBuilder({ session, catalog, creator, table, reads, find })
  const streams = new StreamService({ catalog, creator, changes, builder, deadlines })
  const tokens = new Tokens({ session, catalog, shared, clock, onBackgroundError, closing })

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
  if (signal !== undefined) {
    const ignore = onAbort(signal, () => close().catch(onBackgroundError))
    onAbort(closing, ignore)
  }
  work.start({
    reclaim: () => reclaim({ session, confirmedClock, clock, trimGraceMs, usage }),
    checkDeadlines: () => deadlines.checkDue(),
    finishDeletions: () => basins.finishDeletions(),
    deleteExpiredTokens: async () => tokens.deleteExpired(await confirmedClock.now()),
  })
  const caller = Caller.owner({ tokens, usage, closing, admission })
  return new Engine(
    {
      basins,
      streams,
      admission,
      appends,
      reads,
      readBudget,
      tokens,
      usage,
      clock,
      streamContext: { reserve: (bytes) => admission.reserve(bytes), clock, closing },
      autoCreate: settings.autoCreate,
      sessionInFlightBytes: limits.sessionInFlightBytes,
      closing,
      checkStorage: async () => void (await (session.check?.() ?? session.get('settings', ''))),
      stats: () =>
        statsOf(table, admission, reads, readBudget, {
          storageFull: session.isFull?.() ?? false,
          clockOffsetMs: session.clockOffsetMs?.() ?? 0,
          expiryPaused: confirmedClock.isPaused,
          lostTails,
        }),
      close,
    },
    caller,
  )
}

/** The time of the storage, if it has a clock that the engines share. */
function clockOf(clock: Clock, session: StorageSession): Clock {
  const { clockOffsetMs } = session
  return clockOffsetMs === undefined ? clock : offsetClock(clock, clockOffsetMs)
}
