import type { Headwater } from 'headwater'
import { type Fold, fold } from 'headwater/fold'
import { type SyncedStream, syncedStream } from 'headwater/sync'
import { EMPTY, reduceTodo, type TodoEvent, type TodoState } from './todo.ts'

/**
 * The shared list on this device. A change is an event in the synced stream. The fold shows it at once as
 * pending, and applies it again when events of others reach the server before it.
 */
export class TodoList {
  /** The list, with all that the user did. */
  readonly state: Fold<TodoState>
  readonly stream: SyncedStream
  readonly #events

  /** @param local This device. @param remote The server. */
  constructor(local: Headwater, remote: Headwater) {
    this.stream = syncedStream(
      remote.basin('todo').stream('lists/shared'),
      local.basin('todo').stream('lists/shared'),
    )
    // A record that is not JSON is left out.
    this.#events = this.stream.json<TodoEvent>({ onUndecodable: () => {} })
    this.state = fold(this.#events, { initial: EMPTY, reduce: reduceTodo, version: 1 })
  }

  /** Resolves when the events are stored on this device, together or not at all. */
  async do(...events: TodoEvent[]): Promise<void> {
    await this.#events.appendBatch(events)
  }
}
