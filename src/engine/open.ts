import { Access } from './access/index.ts'
import { Background } from './background.ts'
import { Basins } from './basins.ts'
import { ByteBudget } from './byte-budget.ts'
import { Catalog } from './catalog.ts'
import type { EngineContext } from './context.ts'
import { closedError, storageError } from './errors.ts'
import { gated } from './gate/index.ts'
import { Headwater, type ViewOptions } from './headwater.ts'
import { Locations } from './locations.ts'
import { type OpenOptions, settingsOf } from './options.ts'
import { Reading } from './reading.ts'
import { Records } from './records.ts'
import { statsOf } from './stats.ts'
import { StreamAccess } from './stream-access.ts'
import { StreamLogs } from './stream-logs.ts'
import { Streams } from './streams.ts'
import type { EngineView } from './view.ts'

// TEMPORARY until usage is there
const none = async () => []
const TEMPORARY = {
  account: none,
  basin: none,
  stream: none,
  operation() {},
  appended() {},
  unaryRead() {},
  delivered() {},
  streamingRead: () => () => {},
  storedChanged() {},
  streamCreated() {},
}

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
  const locations = new Locations(engine)
  const basins = new Basins(engine, locations)
  const streams = new Streams(engine, basins)
  const background: Background = new Background(engine, streams)
  const streamAccess = new StreamAccess(engine, streams)
  const reading = new Reading(engine, streamAccess)

  const access = new Access(engine)
  const metrics = TEMPORARY
  const services = {
    basins,
    streams,
    records: new Records(engine, streamAccess, reading),
    tokens: access.tokens,
    metrics,
    locations,
  }
  const viewOf = ({ token, connection = {} }: ViewOptions, previous?: EngineView): EngineView => {
    const holder = token === undefined ? previous?.gate.holder : access.holderOf(token)
    const stats = () => statsOf(engine, reading)
    return { engine, access, stats, connection, ...gated(services, metrics, holder) }
  }

  let closed: Promise<void> | undefined
  const close = async () => {
    closing.abort(closedError())
    reading.close()
    await engine.logs.close()
    await background.close()
    access.close()
    await session.close()
  }
  background.start()
  return new Headwater(viewOf({}), viewOf, () => {
    closed ??= close()
    return closed
  })
}
