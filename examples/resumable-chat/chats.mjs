import { convertToModelMessages, streamText } from 'ai'
import { closeRecord } from 'headwater'
import { model } from './model.mjs'

const JSON_STREAM = { metadata: { 'content-type': 'application/json' } }

/**
 * The chats of a basin. `chats/ID` has the finished messages of a chat, `answers/ID/MESSAGE` the answer to the
 * message with that id: the chunks that the AI SDK shows, one record each. An answer that is complete is
 * closed.
 */
export class Chats {
  #basin
  #closing = new AbortController()
  /** The answers that are being written, by the name of the stream. */
  #writing = new Map()

  constructor(basin) {
    this.#basin = basin
  }

  /** Resolves to the finished messages. A chat that does not exist begins without any. */
  async messages(id) {
    await this.#create(`chats/${id}`)
    const records = await this.#basin.stream(`chats/${id}`).json().read().toArray()
    return records.map(({ value }) => value)
  }

  /** Adds the question of a user, unless it is there, and begins to answer it. Resolves to the answer's stream. */
  async ask(id, question) {
    const messages = await this.messages(id)
    if (!messages.some((message) => message.id === question.id)) {
      await this.#basin.stream(`chats/${id}`).json().append(question, { matchSeqNum: messages.length })
      messages.push(question)
    }
    return this.#answer(id, messages)
  }

  /** Resolves to the stream of the answer that is missing; undefined if the last question has one. */
  async unanswered(id) {
    const messages = await this.messages(id)
    return messages.at(-1)?.role === 'user' ? this.#answer(id, messages) : undefined
  }

  /** Continues the answers that the server was writing when it stopped. */
  async resume() {
    for await (const { name } of this.#basin.listAllStreams({ prefix: 'chats/' })) {
      await this.unanswered(name.slice('chats/'.length))
    }
  }

  /** Stops writing. What was written stays. */
  async close() {
    this.#closing.abort()
    await Promise.allSettled(this.#writing.values())
  }

  async #answer(id, messages) {
    const name = `answers/${id}/${messages.at(-1).id}`
    if (!this.#writing.has(name)) {
      await this.#create(name)
      if (!this.#writing.has(name)) {
        const writing = this.#write(id, messages, this.#basin.stream(name))
        this.#writing.set(name, writing)
        writing
          .catch((error) => this.#closing.signal.aborted || console.error(error))
          .finally(() => this.#writing.delete(name))
      }
    }
    return name
  }

  /** Writes what is missing of an answer, then adds it to the messages of the chat. */
  async #write(id, messages, answer) {
    const messageId = `${messages.at(-1).id}-answer`
    const { closed } = await answer.checkTail()
    let text = textOf(await answer.json().read().toArray())
    if (!closed) text += await this.#generate(messages, messageId, answer, text)
    const message = { id: messageId, role: 'assistant', parts: [{ type: 'text', text }] }
    await this.#basin.stream(`chats/${id}`).json().append(message, { matchSeqNum: messages.length })
  }

  /**
   * Appends the chunks that follow `begun`, and resolves to their text. Chunks around the text are appended
   * together with a token or with the end of the stream, so a stream holds whole tokens, whenever the server
   * stops.
   */
  async #generate(messages, messageId, answer, begun) {
    const prompt = await convertToModelMessages(messages)
    if (begun !== '') prompt.push({ role: 'assistant', content: begun })
    const { signal } = this.#closing
    const result = streamText({ model, messages: prompt, abortSignal: signal })
    let text = ''
    let waiting = []
    for await (const chunk of result.toUIMessageStream()) {
      signal.throwIfAborted()
      if (chunk.type === 'error') throw new Error(chunk.errorText)
      if (begun !== '' && BEFORE_TEXT.has(chunk.type)) continue
      // Providers number their texts as they like; this one goes on.
      if ('id' in chunk) chunk.id = 'answer'
      waiting.push(recordOf(chunk.type === 'start' ? { ...chunk, messageId } : chunk))
      if (chunk.type !== 'text-delta') continue
      await answer.append(waiting)
      text += chunk.delta
      waiting = []
    }
    await answer.append([...waiting, closeRecord()])
    return text
  }

  async #create(name) {
    const stream = this.#basin.stream(name)
    if (await stream.exists()) return
    await this.#basin.createStream(name, {}, JSON_STREAM).catch((error) => {
      if (error.code !== 'resource_already_exists') throw error
    })
  }
}

const BEFORE_TEXT = new Set(['start', 'start-step', 'text-start'])

function recordOf(chunk) {
  return { body: JSON.stringify(chunk) }
}

function textOf(records) {
  return records.map(({ value }) => value.delta ?? '').join('')
}
