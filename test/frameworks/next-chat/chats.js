import { convertToModelMessages, streamText } from 'ai'
import { closeRecord } from 'headwater'
import { engine } from './engine.js'
import { model } from './model.js'

const JSON_STREAM = { metadata: { 'content-type': 'application/json' } }
/** A provider sends these once more when it continues an answer. */
const BEFORE_TEXT = new Set(['start', 'start-step', 'text-start'])

/** The answers that this process writes, by stream: Next loads this module once for each bundle. */
globalThis.writing ??= new Map()
const { writing } = globalThis

export function isId(id) {
  return typeof id === 'string' && /^[\w-]{1,64}$/.test(id)
}

/** Resolves to the finished messages of a chat, which begins without any. */
export async function messagesOf(id) {
  const chat = await streamOf(`chats/${id}`)
  return valuesOf(chat)
}

/** Adds a question, unless it is there, and begins to answer it. Resolves to the stream of the answer. */
export async function ask(id, question) {
  const messages = await messagesOf(id)
  if (!messages.some((message) => message.id === question.id)) {
    const chat = await streamOf(`chats/${id}`)
    await chat.json().append(question, { matchSeqNum: messages.length })
    messages.push(question)
  }
  return answer(id, messages)
}

/** Resolves to the stream of the answer that is missing; undefined if the last question has one. */
export async function unanswered(id) {
  const messages = await messagesOf(id)
  return messages.at(-1)?.role === 'user' ? answer(id, messages) : undefined
}

/** Continues the answers that the server was writing when it stopped. */
export async function continueAnswers() {
  const basin = (await engine()).basin('chat')
  for await (const { name } of basin.listAllStreams({ prefix: 'chats/' })) {
    await unanswered(name.slice('chats/'.length))
  }
}

function answer(id, messages) {
  const name = `answers/${id}/${messages.at(-1).id}`
  if (!writing.has(name)) {
    const written = write(id, messages, name)
    writing.set(name, written)
    written.catch(console.error).finally(() => writing.delete(name))
  }
  return name
}

/** Writes what is missing of an answer, then adds it to the messages of the chat. */
async function write(id, messages, name) {
  const answer = await streamOf(name)
  const chunks = await valuesOf(answer)
  let text = chunks.map(({ delta }) => delta ?? '').join('')
  const messageId = `${messages.at(-1).id}-answer`
  const { closed } = await answer.checkTail()
  if (!closed) text += await generate(messages, messageId, answer, { text, seqNum: chunks.length })
  const message = { id: messageId, role: 'assistant', parts: [{ type: 'text', text }] }
  const chat = await streamOf(`chats/${id}`)
  await chat.json().append(message, { matchSeqNum: messages.length })
}

/**
 * Appends the chunks of the AI SDK that follow those that were written, one record each. A batch ends with a
 * token or with the end of the stream, so a stream holds whole tokens. `matchSeqNum` lets only one writer
 * continue, whatever else is running.
 */
async function generate(messages, messageId, stream, { text: begun, seqNum }) {
  const prompt = await convertToModelMessages(messages)
  if (begun !== '') prompt.push({ role: 'assistant', content: begun })
  let text = ''
  let batch = []
  const append = async (records) => {
    const { end } = await stream.append(records, { matchSeqNum: seqNum })
    seqNum = end.seqNum
  }
  for await (const chunk of streamText({ model, messages: prompt }).toUIMessageStream()) {
    if (chunk.type === 'error') throw new Error(chunk.errorText)
    if (begun !== '' && BEFORE_TEXT.has(chunk.type)) continue
    // Providers choose the ids of their texts; this is one text.
    if ('id' in chunk) chunk.id = 'answer'
    batch.push({ body: JSON.stringify(chunk.type === 'start' ? { ...chunk, messageId } : chunk) })
    if (chunk.type !== 'text-delta') continue
    await append(batch)
    text += chunk.delta
    batch = []
  }
  await append([...batch, closeRecord()])
  return text
}

/** Resolves to a stream of JSON, which is created if it does not exist. */
async function streamOf(name) {
  const basin = (await engine()).basin('chat')
  await basin.createStream(name, {}, JSON_STREAM).catch((error) => {
    if (error.code !== 'resource_already_exists') throw error
  })
  return basin.stream(name)
}

async function valuesOf(stream) {
  const records = await stream.json().read().toArray()
  return records.map(({ value }) => value)
}
