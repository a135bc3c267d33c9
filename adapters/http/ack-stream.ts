import type { AppendTicket } from '../../src/index.ts'
import { concatBytes } from '../../src/model/bytes.ts'
import { HeadwaterError } from '../../src/model/errors.ts'
import { errorBody } from '../../src/wire/error-body.ts'
import { encodeMessageFrame, encodeTerminalFrame } from '../../src/wire/frame.ts'
import { encodeAppendAck } from '../../src/wire/proto-append.ts'

/** How many acks may be owed to a client that does not read them, about 2 MiB. */
const OWED_ACKS_MAX = 16_384

/**
 * The response of an append session: the acks of what was taken in, in order, then the end: a terminal frame if the session failed.
 * The first failure in the order of the inputs is the one that is told (wire-behaviour.md 3.9).
 */
export class AckStream {
  readonly body: ReadableStream<Uint8Array>
  /** Resolves when the session has failed, has come to its end, or is abandoned. */
  readonly over: Promise<void>
  readonly #report: (error: unknown) => void
  #turn: Promise<void> = Promise.resolve()
  #frames: Uint8Array[] = []
  #owed = 0
  #isOver = false
  #isRead = false
  /** Nobody gets the rest. */
  #isBroken = false
  #resolveOver!: () => void
  #controller!: ReadableStreamDefaultController<Uint8Array>
  #wakeReader: (() => void) | undefined
  #wakeWriter: (() => void) | undefined

  constructor(report: (error: unknown) => void) {
    this.#report = report
    this.over = new Promise((resolve) => {
      this.#resolveOver = resolve
    })
    this.body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller
        },
        pull: () => this.#pull(),
        cancel: () => {
          this.#isBroken = true
          this.#settle()
        },
      },
      { highWaterMark: 0 },
    )
  }

  get isOver(): boolean {
    return this.#isOver
  }

  add(ticket: AppendTicket): void {
    this.#owed++
    this.#then(async () => {
      try {
        this.#push(encodeMessageFrame(encodeAppendAck(await ticket.ack())))
      } catch (error) {
        this.#fail(error)
      }
    })
  }

  /** Nothing more is added. With an error, that is the terminal frame unless an append failed before. */
  end(error?: unknown): void {
    this.#then(() => {
      if (error === undefined) this.#settle()
      else this.#fail(error)
    })
  }

  /** The same, at once: acks that are still to come are not waited for. */
  cut(error: unknown): void {
    this.#fail(error)
  }

  /** The client is gone: the response breaks off, so that nobody takes it for complete. */
  abandon(reason: unknown): void {
    if (this.#isOver) return
    this.#isBroken = true
    this.#settle()
    this.#controller.error(reason)
  }

  /**
   * Resolves when one more ack may be owed, or all is over. A runtime that has not begun to send the response may be one that waits
   * for the end of the request: waiting for it would be for ever, so the session fails instead.
   */
  async room(): Promise<void> {
    while (this.#owed >= OWED_ACKS_MAX && !this.#isOver) {
      if (!this.#isRead) {
        this.end(new HeadwaterError('unavailable', 'too many inputs while the runtime sends no acks'))
        await this.over
        return
      }
      await new Promise<void>((resolve) => {
        this.#wakeWriter = resolve
      })
    }
  }

  #then(step: () => void | Promise<void>): void {
    this.#turn = this.#turn.then(step)
  }

  #push(frame: Uint8Array): void {
    if (this.#isOver) return
    this.#frames.push(frame)
    this.#wakeReader?.()
  }

  #fail(error: unknown): void {
    if (this.#isOver) return
    this.#report(error)
    const { status, text } = errorBody(error)
    this.#push(encodeTerminalFrame(status, text))
    this.#settle()
  }

  #settle(): void {
    this.#isOver = true
    this.#resolveOver()
    this.#wakeReader?.()
    this.#wakeWriter?.()
  }

  async #pull(): Promise<void> {
    this.#isRead = true
    if (this.#frames.length === 0 && !this.#isOver) {
      await new Promise<void>((resolve) => {
        this.#wakeReader = resolve
      })
    }
    if (this.#isBroken) return
    // All that is ready goes out in one piece.
    const frames = this.#frames
    this.#frames = []
    this.#owed -= frames.length
    this.#wakeWriter?.()
    if (frames.length > 0) this.#controller.enqueue(concatBytes(frames))
    if (this.#isOver) this.#controller.close()
  }
}
