import { describe, expect, it } from 'vitest'
// @ts-expect-error: a plain script without types
import { startArguments } from '../../scripts/start-arguments.mjs'

describe('npm start', () => {
  it.each([
    [[], ['serve', '--dir', 'data']],
    [
      ['--port', '9000'],
      ['serve', '--dir', 'data', '--port', '9000'],
    ],
    [
      ['--storage', 'memory'],
      ['serve', '--storage', 'memory'],
    ],
    [
      ['--storage=memory', '--open'],
      ['serve', '--storage=memory', '--open'],
    ],
    [
      ['--dir', 'd'],
      ['serve', '--dir', 'd'],
    ],
  ])('turns %j into %j', (args, expected) => {
    expect(startArguments(args)).toEqual(expected)
  })
})
