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
    const question = prompt.findLast(({ role }) => role === 'user')
    const last = prompt.at(-1)
    const begun = last?.role === 'assistant' ? textOf(last) : ''
    const rest = answerTo(textOf(question)).slice(begun.length)
    // Words with the space before them.
    const tokens = rest.match(/\s*\S+/g) ?? []
    return {
      stream: simulateReadableStream({
        chunkDelayInMs: Number(process.env.TOKEN_MS ?? 60),
        chunks: [
          { type: 'stream-start', warnings: [] },
          { type: 'text-start', id: 'text' },
          ...tokens.map((delta) => ({ type: 'text-delta' as const, id: 'text', delta })),
          { type: 'text-end', id: 'text' },
          { type: 'finish', finishReason: { unified: 'stop', raw: 'stop' }, usage: USAGE },
        ],
      }),
    }
  },
})

type Prompt = Parameters<MockLanguageModelV3['doStream']>[0]['prompt']

function textOf(message: Prompt[number] | undefined): string {
  if (message === undefined || message.role === 'system') return ''
  return message.content.map((part) => (part.type === 'text' ? part.text : '')).join('')
}

function answerTo(question: string): string {
  return `You asked: “${question}”.

This answer is written **token by token**, and each token is a record of a stream. Try this:

- *Reload the page* while it is being written. It continues where it was, without a gap or a repeat.
- *Open it in a second tab.* Both show the same answer, and **Stop** works in both.
- *Stop the server* and start it again. What was written is still there, and the rest follows.

The answer is read with \`useChat\` of the AI SDK, which is unchanged.`
}

const USAGE = {
  inputTokens: { total: undefined, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: undefined, text: undefined, reasoning: undefined },
}
