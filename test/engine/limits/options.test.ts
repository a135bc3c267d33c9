import { expect, it } from 'vitest'
import { memory } from '../../../adapters/storage/memory/index.ts'
import { type EngineLimits, open } from '../../../src/index.ts'

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
      new RangeError(`limits.${name} must be at least ${least}, not ${value}`),
    )
  }
  await (await open({ storage: memory(), limits: { [name]: least } })).close()
})
