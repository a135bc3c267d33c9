import type { SessionAppender } from '../../../src/api/append-session.ts'
import type { AppendRequests } from '../append-requests.ts'
import type { ClientCore } from '../core.ts'
import { unexpectedResponse } from '../errors.ts'
import { NotDuplex } from '../not-duplex.ts'
import { pause, pauseMs } from '../retry.ts'
import type { RemoteTarget } from '../stream-target.ts'
import { type AppendLink, openAppendLink } from './append-link.ts'
import { FrameMemory } from './frame-upload.ts'
import { StreamAppender } from './stream-appender.ts'

/**
 * Opens the appender of a session over HTTP/2. Resolves to undefined if the server does not speak it, or
 * takes no append sessions.
 */
export async function openStreamAppender(
  core: ClientCore,
  target: RemoteTarget,
  requests: AppendRequests,
): Promise<SessionAppender | undefined> {
  const memory = new FrameMemory()
  const open = () => requests.creatingStream(() => openLink(core, target, memory))
  const link = await open()
  if (link === undefined) return undefined
  return new StreamAppender(link, requests, memory, async () => {
    const next = await open()
    if (next === undefined) throw unexpectedResponse('it takes no append sessions any more', false)
    return next
  })
}

/** Opens a connection, again after transient failures. Resolves to undefined if the server takes none. */
async function openLink(
  core: ClientCore,
  target: RemoteTarget,
  memory: FrameMemory,
): Promise<AppendLink | undefined> {
  const { clock, onRetry, random, retries } = core.settings
  for (let repetition = 1; ; repetition++) {
    const opened = await openAppendLink(core, target, memory)
    if (opened === undefined || !('error' in opened)) return opened
    const { error, isTransient, retryAfterMs } = opened
    if (error.cause instanceof NotDuplex) return undefined
    if (!isTransient || repetition > retries) throw error
    const ms = pauseMs(repetition, retryAfterMs, random())
    onRetry(error, ms)
    await pause(clock, ms, [core.closing])
  }
}
