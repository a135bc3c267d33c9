import { describe, expect, it } from 'vitest'
// @ts-expect-error: a plain script without types
import { startArguments } from '../../scripts/start-arguments.mjs'

describe('npm start', () => {
  it.each([
    [[], ['serve', '--open', '--storage', 'memory']],
    [
      ['--port', '9000'],
      ['serve', '--open', '--storage', 'memory', '--port', '9000'],
    ],
    [
      ['--storage', 'memory'],
      ['serve', '--open', '--storage', 'memory'],
    ],
    [
      ['--storage=memory', '--open'],
      ['serve', '--storage=memory', '--open'],
    ],
    [['--no-open'], ['serve', '--storage', 'memory', '--no-open']],
  ])('turns %j into %j', (args, expected) => {
    expect(startArguments(args)).toEqual(expected)
  })
})
