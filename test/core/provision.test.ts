import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  basinConfig,
  mergeStreamConfig,
  reconfiguredBasin,
  reconfiguredStream,
} from '../../src/core/config.ts'
import {
  basinCreationKey,
  decideCreate,
  decideEnsure,
  sameConfig,
  streamCreationKey,
} from '../../src/core/provision.ts'
import type { BasinConfigInput, StreamConfigInput } from '../../src/model/config.ts'
import { anyBasinChange, anyStreamChange, anyStreamConfig } from './configs.ts'

const STANDARD: StreamConfigInput = { storageClass: 'standard' }

describe('creating a stream or a basin', () => {
  const key = streamCreationKey('token', STANDARD)
  const existing = (creationKey: string | null) => ({ creationKey })

  it.each([
    ['nothing exists', undefined, key, 'create'],
    ['nothing exists, without a token', undefined, null, 'create'],
    ['the same creation again', existing(key), key, 'noop'],
    ['another token', existing(key), streamCreationKey('other', STANDARD), 'exists'],
    ['another configuration', existing(key), streamCreationKey('token', {}), 'exists'],
    ['no token in the repeated request', existing(key), null, 'exists'],
    ['no token at the creation', existing(null), key, 'exists'],
    ['no token in either', existing(null), null, 'exists'],
  ] as const)('%s', (_, existing, creationKey, decision) => {
    expect(decideCreate(existing, creationKey)).toBe(decision)
  })
})

describe('the key of a creation', () => {
  it('is absent without a token; an empty token counts', () => {
    expect(streamCreationKey(undefined, {})).toBeNull()
    expect(basinCreationKey(undefined, {})).toBeNull()
    expect(streamCreationKey('', {})).not.toBeNull()
    expect(basinCreationKey('', {})).not.toBeNull()
  })

  it.each<[string, StreamConfigInput, StreamConfigInput]>([
    ['members that are undefined', {}, { storageClass: undefined, timestamping: undefined }],
    ['groups without leaves', {}, { timestamping: {}, deleteOnEmpty: { minAgeSeconds: undefined } }],
    [
      'the order of members',
      { storageClass: 'standard', timestamping: { mode: 'arrival', uncapped: true } },
      { timestamping: { uncapped: true, mode: 'arrival' }, storageClass: 'standard' },
    ],
    ['unknown members', STANDARD, { ...STANDARD, unknown: 1 } as StreamConfigInput],
  ])('does not depend on %s', (_, a, b) => {
    expect(streamCreationKey('t', a)).toBe(streamCreationKey('t', b))
    expect(basinCreationKey('t', { defaultStreamConfig: a })).toBe(
      basinCreationKey('t', { defaultStreamConfig: b }),
    )
  })

  it('contains the configuration as it was sent, before defaults', () => {
    const keys = [{}, { storageClass: 'express' }, STANDARD, { deleteOnEmpty: { minAgeSeconds: 0 } }] as const
    expect(new Set(keys.map((sent) => streamCreationKey('t', sent))).size).toBe(keys.length)
  })

  it.each<[string, BasinConfigInput]>([
    ['the cipher', { streamCipher: 'aegis-256' }],
    ['creation on append', { createStreamOnAppend: true }],
    ['creation on read', { createStreamOnRead: true }],
    ['the defaults of streams', { defaultStreamConfig: STANDARD }],
  ])('depends on %s', (_, sent) => {
    expect(basinCreationKey('t', sent)).not.toBe(basinCreationKey('t', {}))
  })

  it('is the same for a basin whose members equal the defaults', () => {
    const sent = { defaultStreamConfig: {}, streamCipher: null, createStreamOnAppend: false }
    expect(basinCreationKey('t', sent)).toBe(basinCreationKey('t', {}))
  })

  it('distinguishes the token from the configuration', () => {
    const token = fc.string({ maxLength: 36 })
    fc.assert(
      fc.property(token, anyStreamConfig, token, anyStreamConfig, (tokenA, a, tokenB, b) => {
        const same = tokenA === tokenB && streamCreationKey('', a) === streamCreationKey('', b)
        expect(streamCreationKey(tokenA, a) === streamCreationKey(tokenB, b)).toBe(same)
      }),
    )
  })
})

describe('ensure', () => {
  const config = mergeStreamConfig(STANDARD, {})
  it.each([
    ['nothing exists', undefined, {}, 'create'],
    ['it is as desired', { config }, STANDARD, 'noop'],
    ['it differs in a leaf', { config }, { ...STANDARD, timestamping: { uncapped: true } }, 'update'],
    ['no body returns it to the defaults', { config }, {}, 'update'],
    ['it has the same explicit 0', { config }, { ...STANDARD, deleteOnEmpty: { minAgeSeconds: 0 } }, 'noop'],
  ] as const)('a stream: %s', (_, existing, desired, decision) => {
    expect(decideEnsure(existing, mergeStreamConfig(desired, {}))).toBe(decision)
  })

  it.each<[string, BasinConfigInput, BasinConfigInput, 'noop' | 'update']>([
    ['unchanged', { createStreamOnRead: true }, { createStreamOnRead: true }, 'noop'],
    ['without a body, replaced by the defaults', { createStreamOnRead: true }, {}, 'update'],
    ['without a body, unchanged', {}, {}, 'noop'],
    [
      'with an explicit 0 that was not there',
      {},
      { defaultStreamConfig: { deleteOnEmpty: { minAgeSeconds: 0 } } },
      'update',
    ],
    [
      'with an explicit 0 that was there',
      { defaultStreamConfig: { deleteOnEmpty: { minAgeSeconds: 0 } } },
      { defaultStreamConfig: { deleteOnEmpty: { minAgeSeconds: 0 } } },
      'noop',
    ],
    ['with another cipher', { streamCipher: 'aegis-256' }, { streamCipher: 'aes-256-gcm' }, 'update'],
  ])('a basin: %s', (_, existing, desired, decision) => {
    expect(decideEnsure({ config: basinConfig(existing) }, basinConfig(desired))).toBe(decision)
  })
})

describe('equal configurations', () => {
  it('are recognized whichever way they were built', () => {
    fc.assert(
      fc.property(anyStreamConfig, anyStreamChange, (own, change) => {
        const changed = reconfiguredStream(mergeStreamConfig(own, {}), change, {})
        expect(sameConfig(changed, mergeStreamConfig(structuredClone(changed), {}))).toBe(true)
      }),
    )
    fc.assert(
      fc.property(anyBasinChange, anyBasinChange, (first, second) => {
        const changed = reconfiguredBasin(reconfiguredBasin(basinConfig({}), first), second)
        expect(sameConfig(changed, basinConfig(structuredClone(changed)))).toBe(true)
      }),
    )
  })
})
