import { MockLanguageModelV3, simulateReadableStream } from 'ai/test'

/**
 * Stands in for a language model, so that the example runs without a network and a key. A real one is one
 * line: `export const model = anthropic('claude-sonnet-4-5')`, from `@ai-sdk/anthropic`.
 *
 * The answer follows from the question, and the model continues an answer that has begun, as language models
 * do.
 */
export const model = new MockLanguageModelV3({
  doStream: async ({ prompt }) => {
    const question = textOf(prompt.findLast(({ role }) => role === 'user'))
    const last = prompt.at(-1)
    const begun = last.role === 'assistant' ? textOf(last) : ''
    const tokens = tokensOf(answerTo(question).slice(begun.length))
    const stream = simulateReadableStream({
      chunkDelayInMs: Number(process.env.TOKEN_MS ?? 40),
      chunks: [
        { type: 'stream-start', warnings: [] },
        { type: 'text-start', id: 'text' },
        ...tokens.map((delta) => ({ type: 'text-delta', id: 'text', delta })),
        { type: 'text-end', id: 'text' },
        { type: 'finish', finishReason: { unified: 'stop', raw: 'stop' }, usage: usageOf(tokens.length) },
      ],
    })
    return { stream }
  },
})

/** Words with the space before them. */
function tokensOf(text) {
  return text.match(/\s*\S+/g) ?? []
}

function textOf({ content }) {
  return content.map((part) => (part.type === 'text' ? part.text : '')).join('')
}

function answerTo(question) {
  return [
    `You asked: “${question}”.`,
    'This answer is written token by token, and each token is a record of a stream.',
    'Reload the page while it is being written: the page continues where it was, without a gap or a repeat.',
    'Open it in a second tab: both show the same answer.',
    'Stop the server and start it again: what was written is still there, and the rest follows.',
  ].join(' ')
}

function usageOf(outputTokens) {
  const unknown = { total: undefined, noCache: undefined, cacheRead: undefined, cacheWrite: undefined }
  return {
    inputTokens: unknown,
    outputTokens: { total: outputTokens, text: outputTokens, reasoning: undefined },
  }
}
