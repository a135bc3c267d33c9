import type { Stream } from '../../src/api/stream.ts'
import type { AfterRefusal } from '../../src/sync/outbox-plan.ts'
import type { OutboxLog } from './outbox-log.ts'
import type { PauseContext } from './pause.ts'

/** The environment of a sender of an outbox. */
export interface SenderContext extends PauseContext {
  readonly log: OutboxLog
  readonly remote: Stream
  /** The stream in which records are examined: the remote one, or the copy of it that a mirror keeps. */
  readonly examined: Stream
  /** Whether the copy has everything that the server has, as far as its mirror knows. */
  readonly isCopyLive: (() => boolean) | undefined
  readonly afterRefusal: AfterRefusal
  readonly onSent: (() => void) | undefined
}
