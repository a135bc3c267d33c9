import { type Append, type History, isEffective, type RecordedOperation, recordsOf } from './operations.ts'
import { afterAppended, contradiction, EMPTY_CONTENTS, type StreamContents } from './stream-model.ts'

export type Verdict =
  /** The operations in an order in which they may have taken effect. */
  | { readonly kind: 'linearizable'; readonly order: History }
  | Violation
  /** There were too many orders to try. */
  | { readonly kind: 'undecided'; readonly configurations: number }

export interface Violation {
  readonly kind: 'violation'
  /** The longest valid order of some of the operations. */
  readonly order: History
  /** The state after that order. */
  readonly state: StreamContents
  /** The operations of which one must come next, although none can. */
  readonly blocked: History
}

/**
 * Searches for an order of the operations of one stream in which each has its outcome according to the
 * sequential model, and none precedes an operation that returned before its call. An append of unknown
 * outcome may take effect at any time after its call, or never. The algorithm is that of Wing and Gong, a
 * search from the beginning of the order, with the memory of Lowe: no configuration (the placed operations
 * and the state after them) is visited twice.
 */
export function checkStream(history: History, { configurationsMax = 200_000 } = {}): Verdict {
  return new Search(history).run(configurationsMax)
}

/** A position of the search to return to. */
interface Branch {
  readonly state: StreamContents
  /** The number of operations placed there. */
  readonly placed: number
  readonly choices: number[]
}

class Search {
  /** Ordered by their calls, from index 1 on. */
  readonly #operations: readonly RecordedOperation[]
  /** A ring of the unplaced operations and the index 0, in the order of their calls. */
  readonly #next: Int32Array
  readonly #previous: Int32Array
  /** The sequence numbers of acknowledged appends. */
  readonly #acknowledged = new Set<number>()
  /** The known records of the longest read. */
  #longestRead: readonly string[] = []
  readonly #seen = new Set<string>()
  readonly #order: number[] = []
  #state = EMPTY_CONTENTS
  /** The number of unplaced operations that have returned, and so must be placed. */
  #unplaced = 0

  constructor(history: History) {
    const operations = withTailsOfAcks(history).filter(isInformative)
    operations.sort((a, b) => a.calledAt - b.calledAt)
    this.#operations = [undefined as never, ...operations]
    const length = this.#operations.length
    this.#next = Int32Array.from({ length }, (_, index) => (index + 1) % length)
    this.#previous = Int32Array.from({ length }, (_, index) => (index + length - 1) % length)
    for (const { operation, outcome } of operations) {
      if (outcome.kind !== 'unknown') this.#unplaced++
      if (outcome.kind === 'read' && outcome.bodies.length > this.#longestRead.length) {
        this.#longestRead = outcome.bodies
      }
      if (operation.kind !== 'append' || outcome.kind !== 'appended') continue
      recordsOf(operation).forEach((_, offset) => void this.#acknowledged.add(outcome.start + offset))
    }
  }

  run(configurationsMax: number): Verdict {
    const branches: Branch[] = []
    let furthest: Violation | undefined
    let fewestUnplaced = Number.POSITIVE_INFINITY
    for (;;) {
      const window = this.#placeObservations()
      if (this.#unplaced === 0) return { kind: 'linearizable', order: this.#order.map(this.#operation) }
      if (this.#isNew(window)) {
        const choices = this.#choices(window)
        // If only an append of unknown outcome could come next, the order may also end here.
        const isEnd = choices.every((index) => this.#operations[index]!.outcome.kind === 'unknown')
        if (isEnd && this.#unplaced < fewestUnplaced) {
          fewestUnplaced = this.#unplaced
          furthest = this.#violation(window)
        }
        branches.push({ state: this.#state, placed: this.#order.length, choices })
      }
      if (this.#seen.size > configurationsMax) return { kind: 'undecided', configurations: this.#seen.size }
      if (!this.#takeNextChoice(branches)) return furthest!
    }
  }

  /**
   * Places every operation that only observes the state and matches this one, which never excludes a valid
   * order. Returns the operations of which one must come next.
   */
  #placeObservations(): number[] {
    for (;;) {
      const window = this.#window()
      const placed = this.#order.length
      for (const index of window) {
        const recorded = this.#operations[index]!
        if (!isEffective(recorded) && contradiction(this.#state, recorded) === undefined) this.#place(index)
      }
      if (this.#order.length === placed) return window
    }
  }

  /** The unplaced operations that were called before any of them had returned. */
  #window(): number[] {
    const window: number[] = []
    let firstReturn = Number.POSITIVE_INFINITY
    for (let index = this.#next[0]!; index !== 0; index = this.#next[index]!) {
      const { calledAt, returnedAt, outcome } = this.#operations[index]!
      if (calledAt > firstReturn) break
      window.push(index)
      if (outcome.kind !== 'unknown') firstReturn = Math.min(firstReturn, returnedAt)
    }
    return window
  }

  /** The appends that can come next, the most likely last. */
  #choices(window: readonly number[]): number[] {
    const appends = window.filter((index) => {
      const recorded = this.#operations[index]!
      return isEffective(recorded) && contradiction(this.#state, recorded) === undefined
    })
    // An acknowledged append has a fixed position: if it fits here, it must come here.
    const acknowledged = appends.find((index) => this.#operations[index]!.outcome.kind === 'appended')
    if (acknowledged !== undefined) return [acknowledged]
    return appends.filter((index) => this.#mayBeHere(index)).reverse()
  }

  /**
   * Whether an append of unknown outcome leaves the positions of acknowledged ones free and does not
   * contradict a read.
   */
  #mayBeHere(index: number): boolean {
    return recordsOf(this.#operations[index]!.operation as Append).every((body, offset) => {
      const seqNum = this.#state.tail + offset
      return !this.#acknowledged.has(seqNum) && (this.#longestRead[seqNum] ?? body) === body
    })
  }

  /** Continues from the latest branch with an untried choice. Returns false if there is none. */
  #takeNextChoice(branches: Branch[]): boolean {
    for (let branch = branches.at(-1); branch !== undefined; branch = branches.at(-1)) {
      while (this.#order.length > branch.placed) this.#displaceLast()
      const choice = branch.choices.pop()
      if (choice !== undefined) {
        this.#place(choice)
        this.#state = afterAppended(branch.state, this.#operations[choice]!.operation as Append)
        return true
      }
      branches.pop()
    }
    return false
  }

  /**
   * The unplaced operations of the window identify the placed ones: before the window all are placed, and
   * after it none.
   */
  #isNew(window: readonly number[]): boolean {
    const { content, fencingToken } = this.#state
    const configuration = `${window.join()} ${content} ${fencingToken}`
    if (this.#seen.has(configuration)) return false
    this.#seen.add(configuration)
    return true
  }

  #violation(window: readonly number[]): Violation {
    const order = this.#order.map(this.#operation)
    return { kind: 'violation', order, state: this.#state, blocked: window.map(this.#operation) }
  }

  readonly #operation = (index: number): RecordedOperation => this.#operations[index]!

  #place(index: number): void {
    this.#next[this.#previous[index]!] = this.#next[index]!
    this.#previous[this.#next[index]!] = this.#previous[index]!
    this.#order.push(index)
    if (this.#operations[index]!.outcome.kind !== 'unknown') this.#unplaced--
  }

  #displaceLast(): void {
    const index = this.#order.pop()!
    this.#next[this.#previous[index]!] = index
    this.#previous[this.#next[index]!] = index
    if (this.#operations[index]!.outcome.kind !== 'unknown') this.#unplaced++
  }
}

function isInformative({ outcome }: RecordedOperation): boolean {
  return outcome.kind !== 'failed' && outcome.kind !== 'not-made'
}

/**
 * The tail in an ack is the tail of the stream at some time during the append, like a separate tail check.
 */
function withTailsOfAcks(history: History): RecordedOperation[] {
  return history.flatMap((recorded) => {
    const { outcome } = recorded
    if (outcome.kind !== 'appended' || outcome.tail <= outcome.end) return [recorded]
    return [
      recorded,
      { ...recorded, operation: { kind: 'check-tail' }, outcome: { kind: 'tail', tail: outcome.tail } },
    ]
  })
}
