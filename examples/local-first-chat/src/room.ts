import type { Stream } from 'headwater'
import { map, type Observable } from 'rxjs'
import { type Message, messageOf } from './message.ts'

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
  messagesFrom(seqNum: number): Observable<Message> {
    return this.#stream.read({ seqNum }).text$.pipe(map(messageOf))
  }

  /** The latest message, then whatever is sent. */
  latestMessages(): Observable<Message> {
    return this.#stream.read({ tailOffset: 1 }).text$.pipe(map(messageOf))
  }

  /** Up to `count` messages before a position. */
  async messagesBefore(seqNum: number, count: number): Promise<readonly Message[]> {
    const first = Math.max(0, seqNum - count)
    const messages: Message[] = []
    for await (const batch of this.#stream.read({ seqNum: first, count: seqNum - first })) {
      messages.push(...batch.text.map(messageOf))
    }
    // Where the oldest are gone, the read began later.
    return messages.filter((message) => message.seqNum < seqNum)
  }
}
