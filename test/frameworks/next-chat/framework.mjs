import { ANSWER } from '../harness/chat.mjs'

const next = (...args) => ['node_modules/.bin/next', ...args]
const chat = { env: { NEXT_TELEMETRY_DISABLED: '1', ANSWER }, chat: true }

export default {
  dependencies: {
    '@ai-sdk/react': '3.0.328',
    '@durable-streams/aisdk-transport': '0.0.7',
    '@durable-streams/client': '0.2.7',
    ai: '6.0.325',
    next: '16.4.6',
    react: '19.3.1',
    'react-dom': '19.3.1',
  },
  // The compiler is an optional dependency.
  install: ['--ignore-scripts'],
  replaced: { 'model.js': 'gated-model.js' },
  modes: [
    { title: 'AI chat in Next 16, next start', prepare: [next('build')], start: next('start'), ...chat },
    // The development server compiles each page when it is first opened, and pages load again with a new one.
    { title: 'AI chat in Next 16, next dev', start: next('dev'), reloads: true, ...chat },
  ],
}
