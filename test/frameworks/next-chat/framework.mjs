const next = (...args) => ['node_modules/.bin/next', ...args]
/** An answer has 63 tokens, and should last longer than the pages take to load. */
const chat = (tokenMs) => ({ env: { NEXT_TELEMETRY_DISABLED: '1', TOKEN_MS: String(tokenMs) }, chat: true })

export default {
  // The compiler is an optional dependency.
  install: ['--ignore-scripts'],
  modes: [
    { title: 'AI chat in Next 16, next start', prepare: [next('build')], start: next('start'), ...chat(200) },
    // The development server compiles each page when it is first opened.
    { title: 'AI chat in Next 16, next dev', start: next('dev'), ...chat(500) },
  ],
}
