/** The appends of one session: once one has failed, those behind it are discarded. */
export class SessionAppends {
  failed = false
  /** Why the first of them failed. */
  failure: unknown

  fail(error: unknown): void {
    if (!this.failed) this.failure = error
    this.failed = true
  }
}
