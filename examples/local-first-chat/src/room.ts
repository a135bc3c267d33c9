import type { Stream } from 'headwater'
import { filter, map, type Observable } from 'rxjs'
import { type Entry, entryOf, type Message } from './message.ts'

/** The most commands that may follow the latest message. */
const COMMANDS_MAX = 9

/** A room is a stream, and each message is a record. */
export class Room {
  readonly name: string
  readonly #stream: Stream

  constructor(name: string, stream: Stream) {
    this.name = name
    this.#stream = stream
  }

  /** Resolves when the message is durable: it survives the end of the tab and the loss of the network. */
  async send(author: string, text: string): Promise<void> {
    await this.#stream.append({ body: text, headers: [['author', author]] })
  }

  /** Resolves to the position of the next message. */
  async tail(): Promise<number> {
    const { seqNum } = await this.#stream.checkTail()
    return seqNum
  }

  /** Emits the history from a position on, then the messages of all tabs. */
  entriesFrom(seqNum: number): Observable<Entry> {
    return this.#stream.follow({ seqNum }).records$.pipe(map(entryOf))
  }

  /** Emits the latest messages, then new ones. */
  latestMessages(): Observable<Message> {
    const { records$ } = this.#stream.follow({ tailOffset: 1 + COMMANDS_MAX })
    return records$.pipe(
      map((record) => entryOf(record).message),
      filter((message) => message !== undefined),
    )
  }

  /** Resolves to the remaining records among the `count` before a position. */
  async entriesBefore(seqNum: number, count: number): Promise<readonly Entry[]> {
    const first = Math.max(0, seqNum - count)
    const entries: Entry[] = []
    for await (const record of this.#stream.read({ seqNum: first, count: seqNum - first })) {
      entries.push(entryOf(record))
    }
    // If the oldest were trimmed, the read started later.
    return entries.filter(({ end }) => end <= seqNum)
  }
}
