import type { Access } from './access/index.ts'
import { Background } from './background.ts'
import { Basins } from './basins.ts'
import { ByteBudget } from './byte-budget.ts'
import { Catalog } from './catalog.ts'
import type { EngineContext } from './context.ts'
import { counted } from './counted.ts'
import { deferred, once } from './deferred.ts'
import { closedError, storageError } from './errors.ts'
import { Headwater } from './headwater.ts'
import { Locations } from './locations.ts'
import { type OpenOptions, settingsOf } from './options.ts'
import { ReadAhead } from './read-ahead.ts'
import { Reading } from './reading.ts'
import { Records } from './records.ts'
import { statsOf } from './stats.ts'
import { StreamAccess } from './stream-access.ts'
import { StreamLogs } from './stream-logs.ts'
import { Streams } from './streams.ts'
import { Usage } from './usage/usage.ts'
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
  const onTrim = () => background.reclaimSoon(settings.trimGraceMs)
  logs = new StreamLogs(session, catalog, settings, onTrim)
  const usage = new Usage({ settings, session, catalog })
  const engine: EngineContext = {
    settings,
    session,
    catalog,
    logs,
    appendBudget: new ByteBudget(settings.limits.appendInFlightBytes),
    readAhead: new ReadAhead(),
    usage,
    closing: closing.signal,
    get background() {
      return background
    },
  }
  const locations = new Locations(engine)
  const basins = new Basins(engine, locations)
  const streams = new Streams(engine, basins)
  const background: Background = new Background(engine, streams, () => usage.maintain())
  const streamAccess = new StreamAccess(engine, streams)
  const reading = new Reading(engine, streamAccess)

  let loadedAccess: Access | undefined
  const access = once(async () => {
    const { Access } = await import('./access/index.ts')
    loadedAccess = new Access(engine)
    return loadedAccess
  })
  const services = {
    basins,
    streams,
    records: new Records(engine, streamAccess, reading),
    tokens: deferred(async () => (await access()).tokens),
    metrics: usage,
    locations,
  }
  const views = new Views(engine, counted(services, usage), streams, access)

  let closed: Promise<void> | undefined
  const close = async () => {
    closing.abort(closedError())
    reading.close()
    await engine.logs.close()
    await background.close()
    await usage.close()
    loadedAccess?.close()
    await session.close()
  }
  background.start()
  usage.start()
  const opened = {
    views,
    stats: () => statsOf(engine, reading),
    counters: () => usage.counters(),
    close: () => {
      closed ??= close()
      return closed
    },
  }
  return new Headwater(opened, views.owner)
}
