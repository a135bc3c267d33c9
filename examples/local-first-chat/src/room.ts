import type { RecordView, SyncedRecord, SyncedStream } from 'headwater/sync'
import { filter, map, type Observable } from 'rxjs'
import { type Entry, entryOf, type Message, storedEntryOf } from './message.ts'

/** The number of messages that are shown at first. */
export const PAGE = 100
/** The most commands that may follow the latest message. */
const COMMANDS_MAX = 9

/** The latest message of a room. */
export interface Latest {
  readonly message: Message
  /** The position after the last message that is on the server. */
  readonly end: number
}

/** A room is a stream, and each message is a record. */
export class Room {
  readonly name: string
  readonly #open: () => Promise<SyncedStream>
  readonly #listed: () => SyncedStream

  constructor(name: string, open: () => Promise<SyncedStream>, listed: () => SyncedStream) {
    this.name = name
    this.#open = open
    this.#listed = listed
  }

  /** Syncs the room before others. Rejects with `stream_not_found` if there is no such room. */
  async open(): Promise<OpenRoom> {
    return new OpenRoom(await this.#open())
  }

  /** Emits the latest message, then each new one, as far as they are on this device. */
  get latest$(): Observable<Latest> {
    return this.#listed()
      .view({ tailOffset: 1 + COMMANDS_MAX })
      .pipe(
        map((view) => latestOf(...view.toArray().map(entryOf))),
        filter((latest) => latest !== undefined),
      )
  }
}

/** A room that is shown. */
export class OpenRoom {
  readonly #synced: SyncedStream

  constructor(synced: SyncedStream) {
    this.#synced = synced
  }

  /** Emits the latest messages as a list, and each change of it. */
  get view$(): Observable<RecordView<SyncedRecord>> {
    return this.#synced.view({ tailOffset: PAGE })
  }

  /** Resolves when the message is durable on this device. It is sent when there is a connection. */
  async send(author: string, text: string): Promise<void> {
    await this.#synced.append({ body: text, headers: [['author', author]] })
  }

  /** Sends a message again that the server has refused. */
  async retry(number: number): Promise<void> {
    await this.#synced.outbox.retry(number)
  }

  /** Removes a message that the server has refused. */
  async discard(number: number): Promise<void> {
    await this.#synced.outbox.discard(number)
  }

  /**
   * Resolves to at most `count` records before a position. If this device has none, it begins its copy of the
   * room again, with as many more; the view then shows them, and this resolves to undefined.
   */
  async entriesBefore(seqNum: number, count: number): Promise<readonly Entry[] | undefined> {
    const first = Math.max(0, seqNum - count)
    const stored = await this.#storedFrom(first, seqNum)
    if (stored.length > 0 || seqNum === 0) return stored
    await this.#synced.mirror.restart({ from: { seqNum: first } })
    return undefined
  }

  async #storedFrom(first: number, seqNum: number): Promise<readonly Entry[]> {
    const entries: Entry[] = []
    for await (const record of this.#synced.mirror.local.read({ seqNum: first, count: seqNum - first })) {
      entries.push(storedEntryOf(record))
    }
    // If the oldest are not stored here, the read started later.
    return entries.filter(({ end }) => end! <= seqNum)
  }
}

/** Returns the last message of some records, if there is one. */
function latestOf(...entries: readonly Entry[]): Latest | undefined {
  const message = entries.findLast((entry) => entry.message !== undefined)?.message
  return message && { message, end: entries.findLast(({ end }) => end !== undefined)?.end ?? 0 }
}
