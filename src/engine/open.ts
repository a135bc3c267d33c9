import { Allowance } from './allowance.ts'
import { ByteBudget } from './byte-budget.ts'
import { Catalog } from './catalog.ts'
import type { EngineContext } from './context.ts'
import { deferred } from './deferred.ts'
import { closedError, storageError } from './errors.ts'
import { Headwater } from './headwater.ts'
import { Late } from './late.ts'
import { LateRest } from './late-rest.ts'
import { type OpenOptions, settingsOf } from './options.ts'
import { ReadAhead } from './read-ahead.ts'
import { Reading } from './reading.ts'
import { Records } from './records.ts'
import type { CallerServices } from './services.ts'
import { statsOf } from './stats.ts'
import { StreamAccess } from './stream-access.ts'
import { StreamLogs } from './stream-logs.ts'
import { UsageTeller } from './usage/usage-teller.ts'
import { Views } from './views.ts'

/**
 * Opens an engine on a storage.
 *
 * ```ts
 * const hw = await open({ storage: memory() })
 * const chat = hw.basin('my-app').stream('chats/42')
 * await chat.append('hello')
 * ```
 *
 * Errors: `storage` when the storage cannot be opened; `RangeError` for limits that make no sense.
 */
export async function open(options: OpenOptions): Promise<Headwater> {
  const settings = settingsOf(options)
  const closing = new AbortController()
  let logs: StreamLogs | undefined
  const session = await storageError(
    settings.storage.open({
      clock: settings.clock,
      onLogChanged: (logId) => {
        if (!closing.signal.aborted) logs?.onLogChanged(logId)
      },
    }),
  )
  const catalog = new Catalog(session)
  const { clock, limits, trimGraceMs } = settings
  const rest = new LateRest(settings, closing.signal, async () => {
    const { Rest } = await import('./rest.ts')
    return new Rest(engine)
  })
  const onTrim = () => {
    const at = clock.now() + trimGraceMs
    rest.tell(({ background }) => background.reclaimSoon(at - clock.now()))
  }
  logs = new StreamLogs(session, catalog, settings, onTrim)
  const usage = new UsageTeller(clock, (record) => rest.tell(({ usage }) => record(usage)))
  const engine: EngineContext = {
    settings,
    session,
    catalog,
    logs,
    rest,
    usage,
    appendBudget: new ByteBudget(limits.appendInFlightBytes),
    pendingBytes: new Allowance(
      'limits.appendWaitingBytes',
      limits.appendWaitingBytes,
      limits.appendInFlightBytes,
    ),
    sessions: new Allowance('limits.openSessions', limits.openSessions),
    readAhead: new ReadAhead(),
    closing: closing.signal,
  }
  const access = new Late('the access tokens', async () => {
    const { Access } = await import('./access/index.ts')
    return new Access(engine)
  })
  const streamAccess = new StreamAccess(engine)
  const reading = new Reading(engine, streamAccess)
  const services: CallerServices = {
    basins: deferred(async () => (await rest.loadToCreate()).control.basins),
    streams: deferred(async () => (await rest.loadToCreate()).control.streams),
    records: new Records(engine, streamAccess, reading),
    tokens: deferred(async () => (await access.load(closing.signal)).service),
    metrics: deferred(async () => (await rest.load()).control.metrics),
    locations: deferred(async () => (await rest.loadToCreate()).control.locations),
  }
  const views = new Views(engine, services, access)

  let closed: Promise<void> | undefined
  const close = async () => {
    closing.abort(closedError())
    reading.close()
    await engine.logs.close()
    await rest.close()
    access.part?.close()
    await session.close()
  }
  const started = rest.start()
  // Code on a disk is there at once, so nothing has to wait for it later: who works in memory may never let the event loop turn.
  if (isCodeOnDisk()) await started
  const opened = {
    views,
    stats: () => statsOf(engine, reading),
    counters: async () => (await rest.load()).usage.counters(),
    close: () => {
      closed ??= close()
      return closed
    },
  }
  return new Headwater(opened, views.owner)
}

/** In Node and its like, as opposed to browsers. */
function isCodeOnDisk(): boolean {
  const { process } = globalThis as { process?: { getBuiltinModule?: unknown } }
  return process?.getBuiltinModule !== undefined
}
