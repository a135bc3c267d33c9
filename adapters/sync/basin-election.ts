import type { MirrorState } from '../../src/sync/mirror-state.ts'
import type { Coordinator, Membership } from './coordinator.ts'
import { decodeMessage, encodeMessage, type MirrorMessage } from './mirror-messages.ts'

type Candidate = Parameters<Coordinator>[1]

interface Member extends Candidate {
  /** The name of the election that the mirror takes part in. */
  readonly election: string
}

/** A message of a mirror, or of a synced basin if the name of the stream is empty. */
interface BasinMessage {
  readonly stream: string
  readonly election: string
  readonly message: unknown
}

export interface ElectionEvents {
  readonly onElected: (isElected: boolean) => void
  /** Called with what mirrors and synced basins of all tabs say; `isOwn` for those of this one. */
  readonly onMessage: (stream: string, message: MirrorMessage, isOwn: boolean) => void
  /** Returns what the mirrors of a stream show that must not copy. */
  readonly idleStateOf: (stream: string) => MirrorState
}

/**
 * Elects one of the tabs of a synced basin, in which mirrors copy if they are permitted to. Mirrors of all
 * tabs hear of each other as if each stream had an election of its own.
 */
export class BasinElection {
  readonly #events: ElectionEvents
  readonly #membership: Membership
  readonly #members = new Map<string, Member>()
  readonly #permitted = new Set<string>()
  #isLeader = false

  constructor(coordinator: Coordinator, name: string, events: ElectionEvents) {
    this.#events = events
    this.#membership = coordinator(name, {
      onElected: (isElected) => {
        this.#isLeader = isElected
        events.onElected(isElected)
      },
      onMessage: (value) => this.#receive(value),
    })
  }

  get isLeader(): boolean {
    return this.#isLeader
  }

  /** The streams whose mirrors copy in this tab. */
  get permitted(): ReadonlySet<string> {
    return this.#permitted
  }

  /** Returns what elects the mirror of a stream. */
  coordinatorOf(stream: string): Coordinator {
    return (election, { onElected, onMessage }) => {
      const later = (callback: () => void) =>
        queueMicrotask(() => {
          if (this.#members.get(stream) === member) callback()
        })
      const member: Member = {
        election,
        onElected: (isElected) => later(() => onElected(isElected)),
        onMessage: (message) => later(() => onMessage(message)),
      }
      this.#members.set(stream, member)
      if (this.#permitted.has(stream)) member.onElected(true)
      else if (this.#isLeader) member.onMessage(this.#idleMessage(stream))
      return {
        stand: () => {},
        post: (message) => this.#post(stream, election, message),
        leave: () => {
          if (this.#members.get(stream) === member) this.#members.delete(stream)
        },
      }
    }
  }

  /** Permits the mirror of a stream to copy. */
  permit(stream: string): void {
    this.#permitted.add(stream)
    this.#members.get(stream)?.onElected(true)
  }

  /** Withdraws the permission. */
  withdraw(stream: string): void {
    this.#permitted.delete(stream)
    const member = this.#members.get(stream)
    if (member === undefined) return
    const message = this.#idleMessage(stream)
    member.onElected(false)
    member.onMessage(message)
    this.#post(stream, member.election, message)
  }

  /** Sends a message of the synced basin to its other tabs; of a stream if one is given. */
  post(message: MirrorMessage, stream = ''): void {
    this.#membership.post({ stream, election: '', message: encodeMessage(message) } satisfies BasinMessage)
  }

  leave(): void {
    this.#membership.leave()
  }

  #idleMessage(stream: string): unknown {
    return encodeMessage({ kind: 'state', state: this.#events.idleStateOf(stream) })
  }

  #post(stream: string, election: string, message: unknown): void {
    this.#membership.post({ stream, election, message } satisfies BasinMessage)
    this.#report(stream, message, true)
  }

  #receive(value: unknown): void {
    const { stream, election, message } = Object(value) as Partial<BasinMessage>
    if (typeof stream !== 'string') return
    const member = this.#members.get(stream)
    if (member !== undefined && member.election === election) member.onMessage(message)
    this.#report(stream, message, false)
    // The mirror that copies answers itself.
    const isQuestion = decodeMessage(message)?.kind === 'hello' && stream !== ''
    if (isQuestion && this.#isLeader && !this.#permitted.has(stream)) {
      const answer = this.#idleMessage(stream)
      this.#membership.post({ stream, election: election ?? '', message: answer } satisfies BasinMessage)
    }
  }

  #report(stream: string, value: unknown, isOwn: boolean): void {
    const message = decodeMessage(value)
    if (message !== undefined) this.#events.onMessage(stream, message, isOwn)
  }
}
