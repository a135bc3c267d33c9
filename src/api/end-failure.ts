import { type AnySignal, unlessAborted } from '../runtime/abort.ts'

/** The failure that ended a session or a producer, and whether a call has rejected because of it. */
export class EndFailure {
  /** Undefined while there is none. Set by `set` only. */
  first: { readonly error: unknown; readonly isOfAppend: boolean } | undefined
  #isReported = false

  /** The first failure counts, but that of an append precedes what ended the session after it was made. */
  set(error: unknown, isOfAppend = false): void {
    const { first } = this
    if (first && (first.error === error || first.isOfAppend || !isOfAppend)) return
    this.first = { error, isOfAppend }
    this.#isReported = false
  }

  throwIfPresent(): void {
    if (this.first) throw this.first.error
  }

  /** Settles as the result of a call, unless the signal aborts first, and remembers that it rejected. */
  async report<Result>(result: Promise<Result>, signal?: AnySignal): Promise<Result> {
    try {
      return await unlessAborted(signal, result)
    } catch (error) {
      this.#isReported ||= !signal?.aborted
      throw error
    }
  }

  /** Waits for the end. Rejects with the failure unless a call has. */
  reportOnce(end: Promise<void>): Promise<void> {
    return end.catch((error: unknown) => {
      if (this.#isReported) return
      this.#isReported = true
      throw error
    })
  }
}
