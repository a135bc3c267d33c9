const next = (...args) => ['node_modules/.bin/next', ...args]
/** An answer has 64 tokens. They take longer than all pages to load, so the server stops before the end. */
const chat = { env: { NEXT_TELEMETRY_DISABLED: '1', TOKEN_MS: '3000' }, chat: true }

export default {
  // The compiler is an optional dependency.
  install: ['--ignore-scripts'],
  modes: [
    { title: 'AI chat in Next 16, next start', prepare: [next('build')], start: next('start'), ...chat },
    // The development server compiles each page when it is first opened, and pages load again with a new one.
    { title: 'AI chat in Next 16, next dev', start: next('dev'), reloads: true, ...chat },
  ],
}
