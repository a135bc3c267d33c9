import { expect, it, vi } from 'vitest'
import { connect } from '../../adapters/client/index.ts'
import { HeadwaterError } from '../../src/index.ts'

vi.mock('../../src/wire/decode-error.ts', () => {
  throw new Error('offline')
})

it.each([
  [503, { code: 'unavailable', mayHaveEffects: true }],
  [422, { code: 'invalid', mayHaveEffects: false }],
])(
  'an error response %i has the code of its status while no code can decode it',
  async (status, expected) => {
    const fetch = async () =>
      new Response('{"code":"storage","message":"why"}', {
        status,
        headers: { 'content-type': 'application/json' },
      })
    await using hw = await connect({ url: 'http://localhost', fetch, retries: 0 })
    const appending = hw.basin('my-basin').stream('my-stream').append('one')
    const error: unknown = await appending.catch((cause) => cause)
    expect(HeadwaterError.is(error)).toBe(true)
    expect(error).toMatchObject(expected)
  },
)
