import type { Stream } from '../../src/api/stream.ts'
import { onAbort } from '../../src/runtime/abort.ts'
import type { Clock } from '../../src/runtime/clock.ts'
import { asHeadwaterError, backOffMs, mirrorOutcome } from '../../src/sync/failures.ts'
import type { MirrorState } from '../../src/sync/mirror-state.ts'
import type { Coordinator, Membership } from './coordinator.ts'
import type { LocalCopy } from './local-copy.ts'
import { type ConnectionEnd, MirrorConnection } from './mirror-connection.ts'
import { decodeMessage, encodeMessage, type MirrorMessage } from './mirror-messages.ts'
import type { MirrorStart } from './mirror-start.ts'
import type { MirrorOutbox } from './outbox.ts'
import type { WakeUps } from './page-events.ts'
import { pauseUntil } from './pause.ts'
import type { StateCell } from './state-cell.ts'

/** How often in succession a mirror looks for another copy at once. */
const REPLACEMENTS_MAX = 3

/** The parts and options that a mirror runs with. */
export interface MirrorRunOptions {
  readonly remote: Stream
  readonly copy: LocalCopy
  readonly from: MirrorStart
  readonly create: (() => boolean) | undefined
  readonly random: () => number
  readonly clock: Clock
  readonly state: StateCell<MirrorState>
  readonly signal: AbortSignal
  readonly coordinator: Coordinator
  readonly wakeUps: WakeUps
  readonly outbox: MirrorOutbox | undefined
}

/** Keeps a copy up to date while this mirror is elected, and shows the state of the elected one otherwise. */
export class MirrorRun {
  readonly #options: MirrorRunOptions
  #failures = 0
  /** How often in succession the copy turned out to be another one. */
  #replacements = 0
  #membership: Membership | undefined
  #connection: MirrorConnection | undefined
  /** Ends the current pause; a stopped mirror continues only if the app asks for it. */
  #wake: ((isAsked: boolean) => void) | undefined
  /** Looks the copy up again. */
  #lookUp: (() => void) | undefined

  constructor(options: MirrorRunOptions) {
    this.#options = options
  }

  /** Runs until the signal aborts. */
  async run(): Promise<void> {
    const { copy, signal, wakeUps } = this.#options
    const onWakeUp = () => this.#connectAgain(false)
    const ignoreWakeUps = wakeUps(onWakeUp, () => this.#connection?.lose())
    try {
      while (!signal.aborted) {
        try {
          const identity = await copy.ensure()
          if (!signal.aborted) await this.#takePart(identity)
        } catch (error) {
          if (!signal.aborted) await this.#pauseAfter(this.#endOfLocal(error), signal)
        }
      }
    } finally {
      ignoreWakeUps()
    }
  }

  /** Connects at once, here or in the mirror that is elected. */
  retry(): void {
    this.#connectAgain(true)
    this.#post({ kind: 'retry' })
  }

  /** Ends a pause, or a connection that may be useless. */
  #connectAgain(isAsked: boolean): void {
    this.#connection?.check(isAsked)
    this.#wake?.(isAsked)
  }

  /** Looks the copy up again, here and in other mirrors: it was replaced. */
  replaced(): void {
    this.#post({ kind: 'replaced' })
    this.#lookUp?.()
    this.#wake?.(true)
  }

  /** Copies while this mirror is elected. Resolves when the copy is another one or the signal aborts. */
  #takePart(identity: string): Promise<void> {
    const { signal, coordinator, state } = this.#options
    return new Promise((resolve) => {
      let term: AbortController | undefined
      let ignoreSignal = () => {}
      let running: Promise<unknown> = Promise.resolve()
      const leave = () => {
        if (this.#lookUp !== leave) return
        this.#lookUp = undefined
        ignoreSignal()
        term?.abort()
        membership.leave()
        this.#membership = undefined
        running.then(() => resolve())
      }
      this.#lookUp = leave
      const onElected = (isElected: boolean) => {
        term?.abort()
        term = undefined
        if (!isElected) {
          state.set({ kind: 'connecting' })
          this.#post({ kind: 'hello' })
          return
        }
        const elected = new AbortController()
        term = elected
        running = running
          .then(() => this.#lead(identity, elected.signal))
          .then(() => {
            if (!elected.signal.aborted) leave()
          })
      }
      const onMessage = (value: unknown) => {
        const message = decodeMessage(value)
        if (message?.kind === 'replaced') leave()
        else if (term !== undefined) {
          if (message?.kind === 'hello') this.#post({ kind: 'state', state: state.current })
          else if (message?.kind === 'retry') this.#connectAgain(true)
        } else if (message?.kind === 'state') state.set(message.state)
      }
      const membership = coordinator(`headwater mirror ${identity}`, { onElected, onMessage })
      this.#membership = membership
      this.#post({ kind: 'hello' })
      ignoreSignal = onAbort(signal, leave)
    })
  }

  /** Copies over one connection after another until the copy is another one or the signal aborts. */
  async #lead(identity: string, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return
    let work = this.#work(signal)
    for (let isQuiet = false; !signal.aborted; ) {
      if (!isQuiet) this.#setState({ kind: 'connecting' })
      const end = await this.#connect(identity, signal)
      if (signal.aborted) return
      if (end.kind === 'other-copy') {
        if (++this.#replacements > REPLACEMENTS_MAX)
          await this.#pause(backOffMs(this.#replacements, 1), signal)
        return
      }
      isQuiet = end.kind === 'conflict'
      // What depends on the copy would wait for it, or act on one that is not the remote stream's.
      if (end.kind === 'stopped') work.abort()
      await this.#pauseAfter(end, signal)
      if (end.kind === 'stopped') work = this.#work(signal)
    }
  }

  /** Runs one connection. */
  async #connect(identity: string, signal: AbortSignal): Promise<ConnectionEnd> {
    const { clock, copy, create, from, remote, outbox } = this.#options
    const onState = (state: MirrorState) => this.#setState(state)
    try {
      this.#connection = new MirrorConnection({
        remote,
        copy,
        identity,
        from,
        create,
        clock,
        signal,
        outbox,
        onState,
      })
      return await this.#connection.run()
    } catch (error) {
      return this.#endOfLocal(error)
    } finally {
      this.#connection = undefined
    }
  }

  /** Runs the outbox until the signal or the returned controller aborts. */
  #work(signal: AbortSignal): AbortController {
    const work = new AbortController()
    const ignoreSignal = onAbort(signal, () => work.abort())
    void this.#options.outbox?.run(work.signal).then(ignoreSignal)
    return work
  }

  /** Shows how a connection ended, and waits until the next attempt. */
  async #pauseAfter(end: ConnectionEnd, signal: AbortSignal): Promise<void> {
    const { clock, random } = this.#options
    this.#replacements = 0
    const hasFailed = end.kind === 'conflict' || (end.kind === 'failed' && !end.hasLasted)
    if (!hasFailed) this.#failures = 0
    if (end.kind === 'stopped') {
      this.#setState(end)
      await this.#pause(undefined, signal)
    } else if (end.kind === 'failed' || end.kind === 'conflict') {
      const error = end.kind === 'failed' ? end.error : undefined
      const askedMs = error?.retryAfterMs
      const pauseMs = backOffMs(++this.#failures, random(), askedMs)
      if (error !== undefined) {
        this.#setState({ kind: 'offline', error, nextAttemptAt: clock.now() + pauseMs })
      }
      await this.#pause(pauseMs, signal, askedMs === undefined)
    }
  }

  /**
   * Waits for a time, or without an end if it is undefined, and until the app wakes the mirror, or something
   * else if that is allowed.
   */
  #pause(ms: number | undefined, signal: AbortSignal, isWakeable = ms !== undefined): Promise<void> {
    return pauseUntil(this.#options.clock, ms, signal, (end) => {
      this.#wake = (isAsked) => {
        if (isAsked || isWakeable) end()
      }
      return () => {
        this.#wake = undefined
      }
    })
  }

  #endOfLocal(thrown: unknown): ConnectionEnd {
    const error = asHeadwaterError(thrown)
    const outcome = mirrorOutcome(error, false)
    if (outcome === 'retry') return { kind: 'failed', error, hasLasted: false }
    return { kind: 'stopped', reason: outcome, error }
  }

  #setState(state: MirrorState): void {
    this.#options.state.set(state)
    this.#post({ kind: 'state', state })
  }

  #post(message: MirrorMessage): void {
    this.#membership?.post(encodeMessage(message))
  }
}
