import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { mergeStreamConfig, SYSTEM_STREAM_CONFIG } from '../../src/core/stream-config.ts'
import {
  normalizeStreamConfig,
  patchStreamConfig,
  reconfigureStream,
} from '../../src/core/stream-reconfiguration.ts'
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

describe('defaults of the system (wire-behaviour.md 8.4)', () => {
  it('are these', () => {
    expect(SYSTEM_STREAM_CONFIG).toEqual(SYSTEM)
    expect(mergeStreamConfig({}, {})).toEqual(SYSTEM)
  })
})

describe('merge (wire-behaviour.md 8.4)', () => {
  it.each<[string, StreamConfigInput, StreamConfigInput, StreamConfig]>([
    ['the stream over everything', OTHER, SYSTEM, OTHER],
    ['the stream, also with the values of the system', SYSTEM, OTHER, SYSTEM],
    ['the basin over the system', {}, OTHER, OTHER],
    [
      'the leaves of a group apart',
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
      'retention as one leaf',
      { retentionPolicy: { ageSeconds: 5 } },
      { retentionPolicy: 'infinite' },
      { ...SYSTEM, retentionPolicy: { ageSeconds: 5 } },
    ],
    ['what is undefined like what is absent', { storageClass: undefined }, OTHER, OTHER],
  ])('takes %s', (_, own, basinDefault, merged) => {
    expect(mergeStreamConfig(own, basinDefault)).toEqual(merged)
  })

  it('is complete, and changes nothing when it is made again', () => {
    fc.assert(
      fc.property(anyStreamConfig, anyStreamConfig, anyStreamConfig, (own, basinDefault, other) => {
        const merged = mergeStreamConfig(own, basinDefault)
        expect(mergeStreamConfig(merged, other)).toEqual(merged)
        expect(mergeStreamConfig(own, merged)).toEqual(merged)
      }),
    )
  })
})

describe('a change of a stream (wire-behaviour.md 8.5)', () => {
  const basinDefault: StreamConfigInput = {
    retentionPolicy: { ageSeconds: 9 },
    timestamping: { mode: 'client-require' },
  }
  it.each<[string, StreamReconfiguration, Partial<StreamConfig>]>([
    ['nothing', {}, {}],
    ['nothing in groups', { timestamping: {}, deleteOnEmpty: {} }, {}],
    ['nothing by undefined', { storageClass: undefined, timestamping: { mode: undefined } }, {}],
    ['sets a leaf', { storageClass: 'express' }, { storageClass: 'express' }],
    ['sets retention', { retentionPolicy: { ageSeconds: 1 } }, { retentionPolicy: { ageSeconds: 1 } }],
    [
      'sets one leaf of a group, the other stays',
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
    expect(reconfigureStream(OTHER, change, basinDefault)).toEqual({ ...OTHER, ...expected })
  })

  it('of nothing changes nothing, and made twice is made once', () => {
    fc.assert(
      fc.property(anyStreamConfig, anyStreamConfig, anyStreamChange, (own, basinDefault, change) => {
        const current = mergeStreamConfig(own, basinDefault)
        expect(reconfigureStream(current, {}, basinDefault)).toEqual(current)
        const once = reconfigureStream(current, change, basinDefault)
        expect(reconfigureStream(once, change, basinDefault)).toEqual(once)
      }),
    )
  })

  it('that clears everything makes the stream what a new one would be', () => {
    const clear = { storageClass: null, retentionPolicy: null, timestamping: null, deleteOnEmpty: null }
    fc.assert(
      fc.property(anyStreamConfig, anyStreamConfig, (own, basinDefault) => {
        const current = mergeStreamConfig(own, basinDefault)
        const cleared = reconfigureStream(current, clear, basinDefault)
        expect(cleared).toEqual(mergeStreamConfig({}, basinDefault))
      }),
    )
  })
})

describe('what is set explicitly (wire-behaviour.md 8.5)', () => {
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
    // Strictly: a member that is not set is absent.
    expect(patchStreamConfig(current, change)).toStrictEqual(expected)
  })

  it('is the same after a change of nothing, and after the same change twice', () => {
    fc.assert(
      fc.property(anyStreamConfig, anyStreamChange, (config, change) => {
        const current = normalizeStreamConfig(config)
        expect(patchStreamConfig(current, {})).toStrictEqual(current)
        const once = patchStreamConfig(current, change)
        expect(patchStreamConfig(once, change)).toStrictEqual(once)
      }),
    )
  })

  it('serialises alike when it means the same', () => {
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
