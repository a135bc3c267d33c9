import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { basinConfig, reconfiguredBasin } from '../../src/core/config.ts'
import type { BasinConfig, BasinConfigInput, BasinReconfiguration } from '../../src/model/config.ts'
import { anyBasinChange } from './configs.ts'

const DEFAULT: BasinConfig = {
  defaultStreamConfig: { storageClass: 'express' },
  streamCipher: null,
  createStreamOnAppend: false,
  createStreamOnRead: false,
}
const FULL: BasinConfig = {
  defaultStreamConfig: { storageClass: 'standard', timestamping: { mode: 'arrival', uncapped: true } },
  streamCipher: 'aegis-256',
  createStreamOnAppend: true,
  createStreamOnRead: true,
}

describe('the input of a basin configuration', () => {
  it.each<[string, BasinConfigInput, BasinConfig]>([
    ['nothing', {}, DEFAULT],
    ['everything', FULL, FULL],
    ['a cipher of null', { streamCipher: null }, DEFAULT],
    ['groups without leaves', { defaultStreamConfig: { timestamping: {}, deleteOnEmpty: {} } }, DEFAULT],
    [
      'an explicit 0 counts as set',
      { defaultStreamConfig: { deleteOnEmpty: { minAgeSeconds: 0 } } },
      { ...DEFAULT, defaultStreamConfig: { storageClass: 'express', deleteOnEmpty: { minAgeSeconds: 0 } } },
    ],
  ])('of %s', (_, input, config) => {
    expect(basinConfig(input)).toStrictEqual(config)
  })

  it('has its members in one order', () => {
    expect(JSON.stringify(basinConfig({ streamCipher: null, defaultStreamConfig: {} }))).toBe(
      JSON.stringify(DEFAULT),
    )
  })
})

describe('a reconfiguration of a basin', () => {
  it.each<[string, BasinReconfiguration, Partial<BasinConfig>]>([
    ['nothing', {}, {}],
    ['undefined changes nothing', { streamCipher: undefined, createStreamOnRead: undefined }, {}],
    [
      'null unsets all defaults of streams',
      { defaultStreamConfig: null },
      { defaultStreamConfig: { storageClass: 'express' } },
    ],
    [
      'null unsets one default',
      { defaultStreamConfig: { timestamping: { mode: null } } },
      { defaultStreamConfig: { storageClass: 'standard', timestamping: { uncapped: true } } },
    ],
    [
      'null unsets a group of defaults',
      { defaultStreamConfig: { timestamping: null } },
      { defaultStreamConfig: { storageClass: 'standard' } },
    ],
    [
      'a default is set without affecting the others',
      { defaultStreamConfig: { retentionPolicy: 'infinite' } },
      { defaultStreamConfig: { ...FULL.defaultStreamConfig, retentionPolicy: 'infinite' } },
    ],
    ['null ends encryption', { streamCipher: null }, { streamCipher: null }],
    ['another cipher', { streamCipher: 'aes-256-gcm' }, { streamCipher: 'aes-256-gcm' }],
    ['null keeps the booleans', { createStreamOnAppend: null, createStreamOnRead: null }, {}],
    ['false', { createStreamOnAppend: false }, { createStreamOnAppend: false }],
    ['the other false', { createStreamOnRead: false }, { createStreamOnRead: false }],
  ])('%s', (_, change, expected) => {
    expect(reconfiguredBasin(FULL, change)).toStrictEqual({ ...FULL, ...expected })
  })

  it('sets both booleans', () => {
    const change = { createStreamOnAppend: true, createStreamOnRead: true }
    expect(reconfiguredBasin(DEFAULT, change)).toStrictEqual({ ...DEFAULT, ...change })
  })

  it('changes nothing if it is empty, and is idempotent', () => {
    fc.assert(
      fc.property(anyBasinChange, anyBasinChange, (first, change) => {
        const current = reconfiguredBasin(DEFAULT, first)
        expect(reconfiguredBasin(current, {})).toStrictEqual(current)
        const once = reconfiguredBasin(current, change)
        expect(reconfiguredBasin(once, change)).toStrictEqual(once)
        expect(basinConfig(once)).toStrictEqual(once)
      }),
    )
  })
})
