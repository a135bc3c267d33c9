import { MockLanguageModelV3, simulateReadableStream } from 'ai/test'

const ANSWER =
  'This answer is written token by token, and each token is a record of a stream. ' +
  'Reload the page while it is being written: the page continues where it was, without a gap or a repeat. ' +
  'Open it in a second tab: both show the same answer. ' +
  'Stop the server and start it again: what was written is still there, and the rest follows.'

/** Stands in for a language model, and continues an answer that has begun, as language models do. */
export const model = new MockLanguageModelV3({
  doStream: async ({ prompt }) => {
    const last = prompt.at(-1)
    const begun = last.role === 'assistant' ? last.content.map(({ text }) => text).join('') : ''
    const tokens = ANSWER.slice(begun.length).match(/\s*\S+/g) ?? []
    const stream = simulateReadableStream({
      chunkDelayInMs: Number(process.env.TOKEN_MS ?? 40),
      chunks: [
        { type: 'stream-start', warnings: [] },
        { type: 'text-start', id: 'text' },
        ...tokens.map((delta) => ({ type: 'text-delta', id: 'text', delta })),
        { type: 'text-end', id: 'text' },
        { type: 'finish', finishReason: { unified: 'stop' }, usage: { inputTokens: {}, outputTokens: {} } },
      ],
    })
    return { stream }
  },
})
