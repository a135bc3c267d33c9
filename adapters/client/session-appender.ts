import { AppendSession, type SessionAppender } from '../../src/api/append-session.ts'
import { HeadwaterError } from '../../src/model/errors.ts'
import { type SharedSignal, unlessAborted } from '../../src/runtime/abort.ts'
import type { AppendRequests } from './append-requests.ts'
import type { ClientCore } from './core.ts'
import { assertPlain } from './extended-append.ts'
import { tailOf } from './read-requests.ts'
import { RequestAppender } from './request-appender.ts'
import type { RemoteTarget } from './stream-target.ts'

/**
 * Opens the appender of a session: over HTTP/2 where the runtime and the server have it. Rejects with
 * `stream_not_found` unless the stream exists or is created, if it `looksFirst`; else the first append finds
 * out.
 */
async function openAppender(
  core: ClientCore,
  target: RemoteTarget,
  requests: AppendRequests,
  looksFirst: boolean,
): Promise<SessionAppender> {
  if (core.sender.sessions.isDuplex) {
    const { openStreamAppender } = await import('./node/node-sessions.ts')
    const appender = await openStreamAppender(core, target, requests)
    if (appender !== undefined) return appender
  }
  if (!looksFirst) return new RequestAppender(core, target, requests)
  try {
    await requests.creatingStream(() => tailOf(core, target))
  } catch (error) {
    // A token that permits appends only: the first append finds out.
    if (!HeadwaterError.is(error) || error.code !== 'permission_denied') throw error
  }
  return new RequestAppender(core, target, requests)
}

/**
 * Opens an append session, which ends when `closing` aborts. Rejects as {@link openAppender} does, and with
 * the reason of the signal.
 */
export async function openAppendSession(
  core: ClientCore,
  target: RemoteTarget,
  requests: AppendRequests,
  signal: AbortSignal | undefined,
  closing: SharedSignal | undefined,
): Promise<AppendSession> {
  const { settings, streamContext } = core
  const opening = core.untilClosed(openAppender(core, target, requests, closing !== undefined))
  const appender = await unlessAborted(signal, opening, (late) => late.release())
  let onEnd = () => {}
  void core.untilClosed(
    new Promise<void>((resolve) => {
      onEnd = resolve
    }),
  )
  return new AppendSession({
    appender,
    reserve: streamContext.reserve,
    inFlightBytes: settings.limits.sessionInFlightBytes,
    clock: settings.clock,
    closing,
    signal,
    revoked: undefined,
    check: assertPlain,
    onEnd,
  })
}
