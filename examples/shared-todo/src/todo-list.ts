import type { Headwater } from 'headwater'
import { type Fold, fold } from 'headwater/fold'
import { type SyncedStream, syncedStream } from 'headwater/sync'
import { BehaviorSubject, type Observable } from 'rxjs'
import { EMPTY, REDUCER_VERSION, reduceTodo, type TodoEvent, type TodoState } from './todo.ts'
import { type Action, actionOf, NO_HISTORY, reversalOf, type UndoHistory, withAction } from './undo.ts'

const BASIN = 'todo'
const STREAM = 'lists/shared'
/** The most records of a batch, which is stored as a whole or not at all. */
const BATCH_RECORDS_MAX = 1_000
/** The errors of changes that may be in a list that was deleted. */
const LOST: readonly string[] = ['outcome_unknown', 'stream_deleted']

/**
 * The shared list on this device. What the user does is an event in the synced stream: the fold shows it at
 * once as pending, and applies it again when events of others reach the server before it.
 */
export class TodoList {
  /** The state of the list, with all that the user did. */
  readonly state: Fold<TodoState>
  /** Emits each state, from the first complete one on. */
  readonly state$: Observable<TodoState>
  /** The connection with the server. */
  readonly stream: SyncedStream
  readonly #events
  readonly #history = new BehaviorSubject<UndoHistory>(NO_HISTORY)

  /** `local` is this device, `remote` the server. */
  constructor(local: Headwater, remote: Headwater) {
    const streamOf = (headwater: Headwater) => headwater.basin(BASIN).stream(STREAM)
    this.stream = syncedStream(streamOf(remote), streamOf(local))
    // A record that is not JSON is left out.
    this.#events = this.stream.json<TodoEvent>({ onUndecodable: () => {} })
    this.state = fold(this.#events, {
      initial: EMPTY,
      reduce: reduceTodo,
      version: REDUCER_VERSION,
      snapshotEvery: 200,
    })
    this.state$ = this.state.value$
    const { outbox } = this.stream
    // A repeated change is harmless, except that it may undo a later one of another device.
    outbox.failed$.subscribe((failed) => {
      for (const { number, error } of failed)
        if (LOST.includes(error.code)) outbox.retry(number).catch(() => {})
    })
  }

  get history(): UndoHistory {
    return this.#history.value
  }

  get history$(): Observable<UndoHistory> {
    return this.#history
  }

  /** Resolves when the events are stored on this device. */
  add(title: string, now = Date.now()): Promise<void> {
    const event = { type: 'added', id: crypto.randomUUID(), title, rank: now } as const
    return this.#do(`Add “${title}”`, event)
  }

  rename(id: string, title: string): Promise<void> {
    return this.#do(`Rename “${this.#titleOf(id)}”`, { type: 'renamed', id, title })
  }

  check(id: string, isDone: boolean): Promise<void> {
    const name = `${isDone ? 'Finish' : 'Reopen'} “${this.#titleOf(id)}”`
    return this.#do(name, { type: 'checked', id, isDone })
  }

  remove(id: string): Promise<void> {
    return this.#do(`Remove “${this.#titleOf(id)}”`, { type: 'removed', id })
  }

  removeDone(): Promise<void> {
    const done = this.state.value.tasks.filter(({ isDone }) => isDone).slice(0, BATCH_RECORDS_MAX)
    return this.#do('Remove what is done', ...done.map(({ id }) => ({ type: 'removed', id }) as const))
  }

  /** Undoes the last action by events that compensate for it. */
  async undo(): Promise<void> {
    const { undo, redo } = this.history
    const action = undo.at(-1)
    if (action === undefined) return
    const reversal = reversalOf(action, this.state.value.tasks)
    this.#history.next({ undo: undo.slice(0, -1), redo: reversal ? [...redo, reversal] : redo })
    await this.#append(reversal)
  }

  async redo(): Promise<void> {
    const { undo, redo } = this.history
    const action = redo.at(-1)
    if (action === undefined) return
    const reversal = reversalOf(action, this.state.value.tasks)
    this.#history.next({ undo: reversal ? [...undo, reversal] : undo, redo: redo.slice(0, -1) })
    await this.#append(reversal)
  }

  async close(): Promise<void> {
    await this.state.close()
    await this.stream.close()
  }

  async #do(name: string, ...events: readonly TodoEvent[]): Promise<void> {
    const action = actionOf(name, this.state.value.tasks, events)
    if (action.steps.length === 0) return
    await this.#append(action)
    this.#history.next(withAction(this.history, action))
  }

  /** Stores the events of an action together or not at all. */
  async #append(action: Action | undefined): Promise<void> {
    if (action !== undefined) await this.#events.appendBatch(action.steps.map(({ done }) => done))
  }

  #titleOf(id: string): string {
    return this.state.value.tasks.find((task) => task.id === id)?.title ?? ''
  }
}
