// Takes the place of `model.js` in the app of docs/ai-chat.md: the check says how far an answer may go.
import { readFile } from 'node:fs/promises'
import { setTimeout } from 'node:timers/promises'
import { MockLanguageModelV3 } from 'ai/test'

const { ANSWER } = process.env
const POLL_MS = 10

/** Waits until an answer with so many characters may go on. */
async function allowed(length) {
  for (;;) {
    const limit = await readFile('allowed-length', 'utf8').catch(() => '')
    if (limit !== '' && length <= Number(limit)) return
    await setTimeout(POLL_MS)
  }
}

async function* chunksAfter(begun) {
  let { length } = begun
  yield { type: 'stream-start', warnings: [] }
  yield { type: 'text-start', id: 'text' }
  for (const delta of ANSWER.slice(length).match(/\s*\S+/g) ?? []) {
    await allowed(length)
    length += delta.length
    yield { type: 'text-delta', id: 'text', delta }
  }
  await allowed(length)
  yield { type: 'text-end', id: 'text' }
  yield { type: 'finish', finishReason: { unified: 'stop' }, usage: { inputTokens: {}, outputTokens: {} } }
}

/** Continues an answer that has begun, as language models do. */
export const model = new MockLanguageModelV3({
  doStream: async ({ prompt }) => {
    const last = prompt.at(-1)
    const begun = last.role === 'assistant' ? last.content.map(({ text }) => text).join('') : ''
    return { stream: ReadableStream.from(chunksAfter(begun)) }
  },
})
