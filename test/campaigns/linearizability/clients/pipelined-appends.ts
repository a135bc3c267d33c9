import { type AppendOutcome, NOT_MADE, UNKNOWN } from '../operations.ts'
import type { AppendCall } from '../stream-client.ts'

export interface Ack {
  readonly start: number
  readonly end: number
  readonly tail: number
}

/** An open append session of any kind. */
export interface OpenSession {
  /** Resolves to the ack once the append is durable. */
  submit(call: AppendCall): Promise<{ ack(): Promise<Ack> }>
  close(): Promise<void>
}

/**
 * Shares one session among several clients, so that their appends are in flight together. The first failure
 * ends the session, and the next append opens another one.
 */
export class PipelinedAppends {
  readonly #open: () => Promise<OpenSession>
  readonly #failed: (error: unknown) => AppendOutcome
  #current: SharedSession | undefined
  readonly #ending: Promise<void>[] = []

  constructor(open: () => Promise<OpenSession>, failed: (error: unknown) => AppendOutcome) {
    this.#open = open
    this.#failed = failed
  }

  async append(call: AppendCall): Promise<AppendOutcome> {
    this.#current ??= new SharedSession(this.#open(), this.#failed)
    const session = this.#current
    const outcome = await session.append(call)
    if (outcome.kind !== 'appended' && this.#current === session) {
      this.#current = undefined
      this.#ending.push(session.close())
    }
    return outcome
  }

  async close(): Promise<void> {
    await Promise.all([...this.#ending, this.#current?.close()])
  }
}

class SharedSession {
  readonly #session: Promise<OpenSession>
  readonly #failed: (error: unknown) => AppendOutcome
  /** The outcome of the append that was submitted last. */
  #last: Promise<AppendOutcome> = Promise.resolve({ kind: 'appended', start: 0, end: 0, tail: 0 })

  constructor(session: Promise<OpenSession>, failed: (error: unknown) => AppendOutcome) {
    this.#session = session
    this.#failed = failed
  }

  append(call: AppendCall): Promise<AppendOutcome> {
    const outcome = this.#outcome(call, this.#last)
    this.#last = outcome
    return outcome
  }

  async close(): Promise<void> {
    // Closing a failed session fails too.
    await this.#session.then((session) => session.close()).catch(() => {})
  }

  async #outcome(call: AppendCall, previous: Promise<AppendOutcome>): Promise<AppendOutcome> {
    let ack: Ack
    try {
      const session = await this.#session
      ack = await (await session.submit(call)).ack()
    } catch (error) {
      // Only the first failure has a reason of its own. Appends submitted after an append without effect have
      // no effect either.
      const before = await previous
      if (before.kind === 'appended') return this.#failed(error)
      return before.kind === 'unknown' ? UNKNOWN : NOT_MADE
    }
    const before = await previous
    if (before.kind !== 'appended') throw new Error('a session acknowledged an append behind one that failed')
    if (before.end > ack.start) throw new Error(`a session put ${ack.start} behind ${before.end}`)
    return { kind: 'appended', ...ack }
  }
}
