import { convertToModelMessages, streamText, type UIMessage, type UIMessageChunk } from 'ai'
import { type Basin, closeRecord, HeadwaterError, type RecordInput } from 'headwater'
import { model } from './model.ts'

const JSON_STREAM = { metadata: { 'content-type': 'application/json' } }
/** A provider sends these once more when it continues an answer. */
const BEFORE_TEXT: readonly string[] = ['start', 'start-step', 'text-start']

/**
 * The chats of a basin. `chats/ID` has the finished messages of a chat, `answers/ID/MESSAGE` the answer to
 * the message with that id: the chunks that the AI SDK shows, one record each. An answer that is complete is
 * closed.
 */
export class Chats {
  readonly #basin: Basin
  readonly #closing = new AbortController()
  /** The answers that are being written, by the name of the stream. */
  readonly #writing = new Map<string, { readonly done: Promise<void>; readonly stop: AbortController }>()

  constructor(basin: Basin) {
    this.#basin = basin
  }

  /** Resolves to all chats that have a question, the latest first. */
  async list(): Promise<{ id: string; title: string }[]> {
    const chats: { id: string; title: string; createdAt: Date }[] = []
    for await (const { name, createdAt } of this.#basin.listAllStreams({ prefix: 'chats/' })) {
      const [question] = await this.#valuesOf<UIMessage>(name, 1)
      if (question !== undefined) {
        chats.push({ id: name.slice('chats/'.length), title: textOf(question).slice(0, 100), createdAt })
      }
    }
    return chats
      .sort((one, other) => Number(other.createdAt) - Number(one.createdAt))
      .map(({ id, title }) => ({ id, title }))
  }

  /** Resolves to the finished messages. A chat that does not exist begins without any. */
  async messages(id: string): Promise<UIMessage[]> {
    await this.#create(`chats/${id}`)
    return this.#valuesOf<UIMessage>(`chats/${id}`)
  }

  /**
   * Adds a question, unless it is there, and begins to answer it: after the answer that is being written,
   * which another page may have asked for. Resolves to the name of the answer's stream.
   */
  async ask(id: string, question: UIMessage): Promise<string> {
    let messages = await this.messages(id)
    if (!messages.some((message) => message.id === question.id)) {
      if (messages.at(-1)?.role === 'user') {
        await this.#writing.get(await this.#answer(id, messages))?.done
        messages = await this.messages(id)
      }
      try {
        await this.#basin.stream(`chats/${id}`).json().append(question, { matchSeqNum: messages.length })
      } catch (error) {
        if (!HeadwaterError.is(error) || error.code !== 'seq_num_mismatch') throw error
        return this.ask(id, question) // Another question came first.
      }
      messages.push(question)
    }
    return this.#answer(id, messages)
  }

  /** Resolves to the stream of the answer that is missing; undefined if the last question has one. */
  async unanswered(id: string): Promise<string | undefined> {
    const messages = await this.messages(id)
    return messages.at(-1)?.role === 'user' ? this.#answer(id, messages) : undefined
  }

  /** Ends the answer that is being written, for all viewers. What was written becomes the answer. */
  async stop(id: string): Promise<void> {
    const writing = this.#writing.get((await this.unanswered(id)) ?? '')
    writing?.stop.abort()
    await writing?.done
  }

  /** Continues the answers that the server was writing when it stopped. */
  async resume(): Promise<void> {
    for await (const { name } of this.#basin.listAllStreams({ prefix: 'chats/' })) {
      await this.unanswered(name.slice('chats/'.length))
    }
  }

  /** Stops writing. What was written stays, and is continued later. */
  async close(): Promise<void> {
    this.#closing.abort()
    await Promise.all([...this.#writing.values()].map(({ done }) => done))
  }

  async #answer(id: string, messages: UIMessage[]): Promise<string> {
    const name = `answers/${id}/${messages.at(-1)!.id}`
    await this.#create(name)
    if (!this.#writing.has(name)) {
      const stop = new AbortController()
      const done = this.#write(id, messages, name, stop.signal)
        .catch((error) => this.#closing.signal.aborted || console.error(error))
        .then(() => void this.#writing.delete(name))
      this.#writing.set(name, { done, stop })
    }
    return name
  }

  /** Writes what is missing of an answer, then adds it to the messages of the chat. */
  async #write(id: string, messages: UIMessage[], name: string, stop: AbortSignal): Promise<void> {
    const messageId = `${messages.at(-1)!.id}-answer`
    const chunks = await this.#valuesOf<UIMessageChunk>(name)
    let text = chunks.map((chunk) => (chunk.type === 'text-delta' ? chunk.delta : '')).join('')
    const { closed } = await this.#basin.stream(name).checkTail()
    if (!closed) text += await this.#generate(messages, messageId, name, text, stop)
    const message = { id: messageId, role: 'assistant', parts: [{ type: 'text', text }] }
    await this.#basin.stream(`chats/${id}`).json().append(message, { matchSeqNum: messages.length })
  }

  /**
   * Appends the chunks that follow `begun`, and resolves to their text. Chunks around the text are appended
   * together with a token or with the end of the stream, so a stream holds whole tokens, whenever the server
   * stops. A failure of the model becomes the end of the text, which all pages show, and the AI SDK logs it.
   */
  async #generate(messages: UIMessage[], messageId: string, name: string, begun: string, stop: AbortSignal) {
    const answer = this.#basin.stream(name)
    const prompt = await convertToModelMessages(messages)
    if (begun !== '') prompt.push({ role: 'assistant', content: begun })
    const abortSignal = AbortSignal.any([stop, this.#closing.signal])
    let text = ''
    let waiting: RecordInput[] = []
    for await (const chunk of streamText({ model, messages: prompt, abortSignal }).toUIMessageStream()) {
      this.#closing.signal.throwIfAborted()
      if (chunk.type === 'error') {
        const failure = `\n\n**The answer failed:** ${chunk.errorText}`
        waiting.push(...textChunks('failure', failure).map((body) => ({ body: JSON.stringify(body) })))
        text += failure
        break
      }
      if (begun !== '' && BEFORE_TEXT.includes(chunk.type)) continue
      // Providers choose the ids of their texts; this is one text.
      if ('id' in chunk) chunk.id = 'answer'
      waiting.push({ body: JSON.stringify(chunk.type === 'start' ? { ...chunk, messageId } : chunk) })
      if (chunk.type !== 'text-delta') continue
      await answer.append(waiting)
      text += chunk.delta
      waiting = []
    }
    this.#closing.signal.throwIfAborted()
    await answer.append([...waiting, closeRecord()])
    return text
  }

  async #create(name: string): Promise<void> {
    await this.#basin.createStream(name, {}, JSON_STREAM).catch((error) => {
      if (!HeadwaterError.is(error) || error.code !== 'resource_already_exists') throw error
    })
  }

  async #valuesOf<Value>(name: string, count?: number): Promise<Value[]> {
    const query = count === undefined ? {} : { count }
    const records = await this.#basin.stream(name).json<Value>().read(query).toArray()
    return records.map(({ value }) => value)
  }
}

function textOf({ parts }: UIMessage): string {
  return parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
}

function textChunks(id: string, delta: string): UIMessageChunk[] {
  return [
    { type: 'text-start', id },
    { type: 'text-delta', id, delta },
    { type: 'text-end', id },
  ]
}
