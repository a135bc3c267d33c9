import { Background } from './background.ts'
import { Basins } from './basins.ts'
import { ByteBudget } from './byte-budget.ts'
import { Catalog } from './catalog.ts'
import type { EngineContext } from './context.ts'
import { closedError, storageError } from './errors.ts'
import { Headwater } from './headwater.ts'
import { type OpenOptions, settingsOf } from './options.ts'
import { Reading } from './reading.ts'
import { StreamAccess } from './stream-access.ts'
import { StreamLogs } from './stream-logs.ts'
import { Streams } from './streams.ts'

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
  const engine: EngineContext = {
    settings,
    session,
    catalog,
    logs,
    appendBudget: new ByteBudget(settings.limits.appendInFlightBytes),
    closing: closing.signal,
    get background() {
      return background
    },
  }
  const basins = new Basins(engine)
  const streams = new Streams(engine, basins)
  const background: Background = new Background(engine, streams)
  const access = new StreamAccess(engine, streams)
  const reading = new Reading(engine, access)

  let closed: Promise<void> | undefined
  const close = async () => {
    closing.abort(closedError())
    reading.close()
    await engine.logs.close()
    await background.close()
    await session.close()
  }
  background.start()
  return new Headwater({ engine, basins, streams, access, reading }, () => {
    closed ??= close()
    return closed
  })
}
