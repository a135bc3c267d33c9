import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  mergeStreamConfig,
  normalizeStreamConfig,
  patchStreamConfig,
  reconfiguredStream,
  SYSTEM_STREAM_CONFIG,
} from '../../src/core/config.ts'
import type { StreamConfig, StreamConfigInput, StreamReconfiguration } from '../../src/model/config.ts'
import { anyStreamChange, anyStreamConfig } from './configs.ts'

const SYSTEM: StreamConfig = {
  storageClass: 'express',
  retentionPolicy: { ageSeconds: 604_800 },
  timestamping: { mode: 'client-prefer', uncapped: false },
  deleteOnEmpty: { minAgeSeconds: 0 },
}
/** Differs from the system's defaults in every leaf. */
const OTHER: StreamConfig = {
  storageClass: 'standard',
  retentionPolicy: 'infinite',
  timestamping: { mode: 'arrival', uncapped: true },
  deleteOnEmpty: { minAgeSeconds: 60 },
}

describe('the system defaults', () => {
  it('have these values', () => {
    expect(SYSTEM_STREAM_CONFIG).toEqual(SYSTEM)
    expect(mergeStreamConfig({}, {})).toEqual(SYSTEM)
  })

  it('cannot be changed through a configuration that was returned', () => {
    const configs = [mergeStreamConfig({}, {}), reconfiguredStream(OTHER, { retentionPolicy: null }, {})]
    for (const { retentionPolicy } of configs) {
      expect(() => Object.assign(retentionPolicy, { ageSeconds: 1 })).toThrow(TypeError)
    }
    expect(SYSTEM_STREAM_CONFIG).toEqual(SYSTEM)
  })
})

describe('the effective configuration', () => {
  it.each<[string, StreamConfigInput, StreamConfigInput, StreamConfig]>([
    ['the stream takes precedence', OTHER, SYSTEM, OTHER],
    ['the stream takes precedence with explicit system defaults', SYSTEM, OTHER, SYSTEM],
    ['the basin takes precedence over the system', {}, OTHER, OTHER],
    [
      'each leaf of a group separately',
      { timestamping: { uncapped: false } },
      { timestamping: { mode: 'arrival', uncapped: true } },
      { ...SYSTEM, timestamping: { mode: 'arrival', uncapped: false } },
    ],
    ['a group without leaves', { timestamping: {}, deleteOnEmpty: {} }, OTHER, OTHER],
    [
      'an explicit 0 over the basin',
      { deleteOnEmpty: { minAgeSeconds: 0 } },
      OTHER,
      { ...OTHER, deleteOnEmpty: { minAgeSeconds: 0 } },
    ],
    [
      'retention as a single leaf',
      { retentionPolicy: { ageSeconds: 5 } },
      { retentionPolicy: 'infinite' },
      { ...SYSTEM, retentionPolicy: { ageSeconds: 5 } },
    ],
    ['undefined like absent', { storageClass: undefined }, OTHER, OTHER],
  ])('takes %s', (_, own, basinDefault, merged) => {
    expect(mergeStreamConfig(own, basinDefault)).toEqual(merged)
  })

  it('is complete and idempotent', () => {
    fc.assert(
      fc.property(anyStreamConfig, anyStreamConfig, anyStreamConfig, (own, basinDefault, other) => {
        const merged = mergeStreamConfig(own, basinDefault)
        expect(mergeStreamConfig(merged, other)).toEqual(merged)
        expect(mergeStreamConfig(own, merged)).toEqual(merged)
      }),
    )
  })
})

describe('a reconfiguration of a stream', () => {
  const basinDefault: StreamConfigInput = {
    retentionPolicy: { ageSeconds: 9 },
    timestamping: { mode: 'client-require' },
  }
  it.each<[string, StreamReconfiguration, Partial<StreamConfig>]>([
    ['nothing', {}, {}],
    ['empty groups change nothing', { timestamping: {}, deleteOnEmpty: {} }, {}],
    ['undefined changes nothing', { storageClass: undefined, timestamping: { mode: undefined } }, {}],
    ['sets a leaf', { storageClass: 'express' }, { storageClass: 'express' }],
    ['sets retention', { retentionPolicy: { ageSeconds: 1 } }, { retentionPolicy: { ageSeconds: 1 } }],
    [
      'sets one leaf of a group and keeps the other',
      { timestamping: { uncapped: false } },
      { timestamping: { mode: 'arrival', uncapped: false } },
    ],
    ['sets 0', { deleteOnEmpty: { minAgeSeconds: 0 } }, { deleteOnEmpty: { minAgeSeconds: 0 } }],
    [
      'returns a leaf to the default of the basin',
      { retentionPolicy: null },
      { retentionPolicy: { ageSeconds: 9 } },
    ],
    ['returns a leaf to the default of the system', { storageClass: null }, { storageClass: 'express' }],
    [
      'returns one leaf of a group',
      { timestamping: { mode: null } },
      { timestamping: { mode: 'client-require', uncapped: true } },
    ],
    [
      'returns a whole group, leaf by leaf',
      { timestamping: null },
      { timestamping: { mode: 'client-require', uncapped: false } },
    ],
    ['returns a group of one leaf', { deleteOnEmpty: null }, { deleteOnEmpty: { minAgeSeconds: 0 } }],
    [
      'returns that leaf',
      { deleteOnEmpty: { minAgeSeconds: null } },
      { deleteOnEmpty: { minAgeSeconds: 0 } },
    ],
    [
      'sets and returns at once',
      { storageClass: null, timestamping: { mode: 'client-prefer', uncapped: null } },
      { storageClass: 'express', timestamping: { mode: 'client-prefer', uncapped: false } },
    ],
  ])('%s', (_, change, expected) => {
    expect(reconfiguredStream(OTHER, change, basinDefault)).toEqual({ ...OTHER, ...expected })
  })

  it('changes nothing if it is empty, and is idempotent', () => {
    fc.assert(
      fc.property(anyStreamConfig, anyStreamConfig, anyStreamChange, (own, basinDefault, change) => {
        const current = mergeStreamConfig(own, basinDefault)
        expect(reconfiguredStream(current, {}, basinDefault)).toEqual(current)
        const once = reconfiguredStream(current, change, basinDefault)
        expect(reconfiguredStream(once, change, basinDefault)).toEqual(once)
      }),
    )
  })

  it('equals a new stream after clearing everything', () => {
    const clear = { storageClass: null, retentionPolicy: null, timestamping: null, deleteOnEmpty: null }
    fc.assert(
      fc.property(anyStreamConfig, anyStreamConfig, (own, basinDefault) => {
        const current = mergeStreamConfig(own, basinDefault)
        const cleared = reconfiguredStream(current, clear, basinDefault)
        expect(cleared).toEqual(mergeStreamConfig({}, basinDefault))
      }),
    )
  })
})

describe('explicitly set values', () => {
  it.each<[string, StreamConfigInput, StreamReconfiguration, StreamConfigInput]>([
    ['stays', { storageClass: 'standard' }, {}, { storageClass: 'standard' }],
    ['is set', {}, { storageClass: 'standard' }, { storageClass: 'standard' }],
    ['is unset', { storageClass: 'standard' }, { storageClass: null }, {}],
    [
      'is unset as a group',
      { timestamping: { mode: 'arrival', uncapped: true } },
      { timestamping: null },
      {},
    ],
    [
      'is unset in a group',
      { timestamping: { mode: 'arrival', uncapped: true } },
      { timestamping: { mode: null } },
      { timestamping: { uncapped: true } },
    ],
    [
      'goes with the last leaf of its group',
      { timestamping: { mode: 'arrival' } },
      { timestamping: { mode: null } },
      {},
    ],
    ['may be 0', {}, { deleteOnEmpty: { minAgeSeconds: 0 } }, { deleteOnEmpty: { minAgeSeconds: 0 } }],
  ])('%s', (_, current, change, expected) => {
    // Strictly, because a member that is not set must be absent.
    expect(patchStreamConfig(current, change)).toStrictEqual(expected)
  })

  it('do not change with an empty reconfiguration or a repeated one', () => {
    fc.assert(
      fc.property(anyStreamConfig, anyStreamChange, (config, change) => {
        const current = normalizeStreamConfig(config)
        expect(patchStreamConfig(current, {})).toStrictEqual(current)
        const once = patchStreamConfig(current, change)
        expect(patchStreamConfig(once, change)).toStrictEqual(once)
      }),
    )
  })

  it('serialize to the same text if they are equal', () => {
    fc.assert(
      fc.property(anyStreamConfig, anyStreamConfig, (config, basinDefault) => {
        const normal = normalizeStreamConfig(config)
        expect(normalizeStreamConfig(normal)).toStrictEqual(normal)
        expect(mergeStreamConfig(normal, basinDefault)).toEqual(mergeStreamConfig(config, basinDefault))
        const reversed = Object.fromEntries(Object.entries(config).reverse())
        expect(JSON.stringify(normalizeStreamConfig(reversed))).toBe(JSON.stringify(normal))
      }),
    )
  })
})
