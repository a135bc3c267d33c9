import type { Stream } from 'headwater'
import { filter, map, type Observable } from 'rxjs'
import { type Entry, entryOf, type Message } from './message.ts'

/** How many records may follow the latest message that are none. */
const COMMANDS_MAX = 9

/** A stream, and each message a record of it. */
export class Room {
  readonly name: string
  readonly #stream: Stream

  constructor(name: string, stream: Stream) {
    this.name = name
    this.#stream = stream
  }

  /** Resolves when the message is durable: closing the tab or losing the network does not take it away. */
  async send(author: string, text: string): Promise<void> {
    await this.#stream.append({ body: text, headers: [['author', author]] })
  }

  /** The position that the next message will get. */
  async tail(): Promise<number> {
    const { seqNum } = await this.#stream.checkTail()
    return seqNum
  }

  /** History from a position on, then whatever is sent, in any tab. */
  entriesFrom(seqNum: number): Observable<Entry> {
    return this.#stream.read({ seqNum }).text$.pipe(map(entryOf))
  }

  /** The latest messages, then whatever is sent. */
  latestMessages(): Observable<Message> {
    const { text$ } = this.#stream.read({ tailOffset: 1 + COMMANDS_MAX })
    return text$.pipe(
      map((record) => entryOf(record).message),
      filter((message) => message !== undefined),
    )
  }

  /** What is left of the `count` records before a position. */
  async entriesBefore(seqNum: number, count: number): Promise<readonly Entry[]> {
    const first = Math.max(0, seqNum - count)
    const entries: Entry[] = []
    for await (const batch of this.#stream.read({ seqNum: first, count: seqNum - first })) {
      entries.push(...batch.text.map(entryOf))
    }
    // Where the oldest are gone, the read began later.
    return entries.filter(({ end }) => end <= seqNum)
  }
}
