/** A call of a storage, or its answer, that waits for the scheduler to let it go on. */
export interface HeldCall {
  readonly session: object
  readonly engine: string
  readonly operation: string
  readonly phase: 'call' | 'answer'
  /** Calls of one lane go on in their order: appends to one log of one engine. */
  readonly lane: string | undefined
  go(): Promise<void>
  /** It never goes on. */
  drop(): void
}

/** All calls of all engines that are held back, in the order in which they came. */
export class HeldCalls {
  #calls: HeldCall[] = []

  hold(call: HeldCall): void {
    this.#calls.push(call)
  }

  /** Those of which any may go on next. */
  get ready(): readonly HeldCall[] {
    const lanes = new Set<string>()
    return this.#calls.filter(({ lane }) => {
      if (lane === undefined) return true
      const isFirst = !lanes.has(lane)
      lanes.add(lane)
      return isFirst
    })
  }

  of(session: object): readonly HeldCall[] {
    return this.#calls.filter((call) => call.session === session)
  }

  async letGo(call: HeldCall): Promise<void> {
    this.#remove(call)
    await call.go()
  }

  drop(call: HeldCall): void {
    this.#remove(call)
    call.drop()
  }

  #remove(call: HeldCall): void {
    this.#calls = this.#calls.filter((other) => other !== call)
  }
}
