const next = (...args) => ['node_modules/.bin/next', ...args]
const all = {
  env: { NEXT_TELEMETRY_DISABLED: '1' },
  bundled: true,
}

export default {
  dependencies: { next: '16.4.6', react: '19.3.1', 'react-dom': '19.3.1' },
  // The compiler is an optional dependency.
  install: ['--ignore-scripts'],
  modes: [
    { title: 'Next 16, next start', prepare: [next('build')], start: next('start'), ...all },
    { title: 'Next 16, next dev', start: next('dev'), ...all, edited: 'engine.js' },
    { title: 'Next 16, next dev --webpack', start: next('dev', '--webpack'), ...all, edited: 'engine.js' },
  ],
}
