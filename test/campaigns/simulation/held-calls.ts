/** A storage call, or its result, that waits until the scheduler releases it. */
export interface HeldCall {
  readonly session: object
  readonly engine: string
  readonly operation: string
  readonly phase: 'call' | 'answer'
  /** Calls of one lane are released in order: the appends of one engine to one log. */
  readonly queue: string | undefined
  run(): Promise<void>
  /** Discards the call. */
  drop(): void
}

/** All held calls of all engines, in the order of their arrival. */
export class HeldCalls {
  #calls: HeldCall[] = []

  hold(call: HeldCall): void {
    this.#calls.push(call)
  }

  /** The calls that may be released next. */
  get ready(): readonly HeldCall[] {
    const queues = new Set<string>()
    return this.#calls.filter(({ queue }) => {
      if (queue === undefined) return true
      const isFirst = !queues.has(queue)
      queues.add(queue)
      return isFirst
    })
  }

  of(session: object): readonly HeldCall[] {
    return this.#calls.filter((call) => call.session === session)
  }

  async release(call: HeldCall): Promise<void> {
    this.#remove(call)
    await call.run()
  }

  drop(call: HeldCall): void {
    this.#remove(call)
    call.drop()
  }

  #remove(call: HeldCall): void {
    this.#calls = this.#calls.filter((other) => other !== call)
  }
}
