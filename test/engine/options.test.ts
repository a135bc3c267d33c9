import { expect, it } from 'vitest'
import { memory } from '../../adapters/storage/memory/index.ts'
import type { EngineLimits } from '../../src/engine/options.ts'
import { open } from '../../src/index.ts'
import { usageMetrics } from '../../src/usage/index.ts'

it.each<[keyof EngineLimits, least: number]>([
  ['appendInFlightBytes', 1_048_576],
  ['appendWaitingBytes', 1_048_576],
  ['sessionInFlightBytes', 1_048_576],
  ['followerLagBatches', 1],
  ['followerLagBytes', 1],
  ['cachedStreams', 1],
  ['openSessions', 1],
])('limits.%s is at least %i', async (name, least) => {
  for (const value of [least - 1, Number.NaN]) {
    await expect(open({ storage: memory(), limits: { [name]: value } })).rejects.toThrow(
      expect.objectContaining({
        code: 'invalid',
        message: `limits.${name} must be at least ${least}, not ${value}`,
        field: `limits.${name}`,
      }),
    )
  }
  await (await open({ storage: memory(), limits: { [name]: least } })).close()
})

const EXAMPLE = 'open needs a storage: `open({ storage: memory() })`'
it.each<[string, unknown, string]>([
  ['nothing', undefined, EXAMPLE],
  ['null', null, EXAMPLE],
  ['no storage', {}, EXAMPLE],
  ['a storage', memory(), 'open takes options, not a storage: `open({ storage: memory() })`'],
  ['the function', { storage: memory }, `${EXAMPLE}; got the function itself: call it`],
  ['a promise', { storage: Promise.resolve(memory()) }, `${EXAMPLE}; got a Promise: await it`],
  ['a name', { storage: 'memory' }, EXAMPLE],
  [
    'a misspelt option',
    { storage: memory(), autocreate: false },
    'unknown member `autocreate`; expected `storage`, `clock`, `random`, `limits`, `autoCreate`, `trimGraceMs`, `ciphers`, `usage`, `signal`, `onBackgroundError`',
  ],
  [
    'a misspelt limit',
    { storage: memory(), limits: { openSession: 1 } },
    'unknown member `limits.openSession`; expected `appendInFlightBytes`, `appendWaitingBytes`, `sessionInFlightBytes`, `followerLagBatches`, `followerLagBytes`, `readBufferBytes`, `cachedStreams`, `openSessions`',
  ],
  [
    'a limit as text',
    { storage: memory(), limits: { openSessions: '5' } },
    '`limits.openSessions` must be a number',
  ],
  [
    'the function usageMetrics',
    { storage: memory(), usage: usageMetrics },
    '`usage` must be a usage module, such as `usageMetrics()`; got the function itself: call it',
  ],
  [
    'a cipher that is not awaited',
    { storage: memory(), ciphers: [Promise.resolve({})] },
    '`ciphers[0]` must be a cipher, such as `await aegis256()`; got a Promise: await it',
  ],
])('open explains which options to pass instead of %s', async (_, options, message) => {
  await expect(open(options as never)).rejects.toThrow(
    expect.objectContaining({ code: 'invalid', message, field: expect.any(String) }),
  )
})
