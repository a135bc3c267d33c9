// @module-tag slow

import { describe, expect, it } from 'vitest'
import { errorsOf, samplesOfDeclarations } from './docstring-samples.ts'

const MISTAKES = [
  ['an unknown name', `const hw = await open({ storage: memry() })`, /'memry'/],
  ['an option that does not exist', `createHandler(hw, { authentication: 'none' })`, /'authentication'/],
  ['a value of the wrong type', `await stream.append(42)`, /'number'/],
] as const

const samples = samplesOfDeclarations()
const mistaken = MISTAKES.map(([at, code]) => ({ at, code, language: 'ts' }))
const errors = errorsOf([...samples, ...mistaken])

describe('the code in a docstring compiles against the built declarations', () => {
  it('and is found', () => {
    expect(samples.map(({ code }) => code).join('')).toContain('await open({ storage: memory() })')
  })

  it.each(samples.map(({ at }, i) => [at, i] as const))('%s', (_, i) => {
    expect(errors[i]).toEqual([])
  })

  it.each(MISTAKES.map(([mistake, , message], i) => [mistake, message, samples.length + i] as const))(
    'unless it has %s',
    (_, message, i) => {
      expect(errors[i]).toEqual([expect.stringMatching(message)])
    },
  )
})
