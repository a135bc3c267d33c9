import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { createHandler } from '../../adapters/http/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { faultyStorage, virtualClock } from '../../adapters/testing/index.ts'
import { type ErrorCode, HeadwaterError, open } from '../../src/index.ts'
import { ERROR_KINDS } from '../../src/model/errors.ts'
import { FrameDecoder } from '../../src/wire/frame.ts'
import { aesOfNode, key } from './encryption/support.ts'
import { CASES, type Case, TOKENS, type World } from './error-code-cases.ts'

async function openWorld(): Promise<World> {
  const inner = memory()
  const storage = faultyStorage(inner)
  const clock = virtualClock({ now: 1_000_000 })
  const cipher = { isBroken: false }
  const hw = await open({
    storage,
    clock,
    limits: { openSessions: 1 },
    ciphers: [
      {
        ...aesOfNode,
        seal: (...args) => {
          if (cipher.isBroken) throw new Error('out of entropy')
          return aesOfNode.seal(...args)
        },
      },
    ],
  })
  const observer = await open({ storage: inner, clock, autoCreate: false })
  await hw.createBasin('basin')
  await hw.createBasin('encrypted', { streamCipher: 'aes-256-gcm' })
  const stream = hw.basin('basin').stream('stream')
  const encrypted = hw.basin('encrypted').stream('stream', { encryptionKey: key(1) })
  for (const each of [stream, encrypted]) await each.append('first')
  // Loads the code for it.
  await observer.listAccessTokens()
  const handler = createHandler(hw, { auth: 'none', onError: () => {} })
  onTestFinished(async () => {
    vi.doUnmock(TOKENS)
    storage.heal()
    await Promise.all([hw.close(), observer.close()])
  })
  const request: World['request'] = async (method, path, init) => {
    const response = await handler(new Request(`http://localhost${path}`, { method, ...init }))
    throw await errorOf(response)
  }
  return { hw, storage, observer, stream, encrypted, cipher, request }
}

/** The error that a response, or a terminal frame in it, reports. */
async function errorOf(response: Response): Promise<HeadwaterError> {
  const bytes = new Uint8Array(await response.arrayBuffer())
  let { status } = response
  let body = new TextDecoder().decode(bytes)
  for (const frame of response.ok ? new FrameDecoder().decode(bytes) : []) {
    if (frame.kind === 'terminal') ({ status, body } = frame)
  }
  const { code, message } = JSON.parse(body)
  const error = new HeadwaterError(code, message)
  expect(status).toBe(error.status)
  return error
}

/** Everything that calls can change. */
async function stateOf({ observer }: World): Promise<unknown> {
  const basins = []
  for await (const info of observer.listAllBasins()) {
    const streams = []
    for await (const { name } of observer.basin(info.name).listAllStreams()) {
      const stream = observer.basin(info.name).stream(name)
      streams.push([name, await stream.checkTail(), await observer.basin(info.name).stream(name).config()])
    }
    basins.push([info, await observer.basin(info.name).config(), streams])
  }
  return { basins, tokens: (await observer.listAccessTokens()).items }
}

const failureOf = (call: () => Promise<unknown>): Promise<unknown> =>
  call().then(
    () => undefined,
    (error) => error,
  )

describe.each(Object.entries(CASES) as [ErrorCode, readonly Case[]][])('%s', (code, cases) => {
  const kind = ERROR_KINDS[code]

  it.each(cases.map((each) => [each.title ?? 'the call', each] as const))(
    'of %s has flags that agree with what happened',
    async (_, { fail, heal, retry, hasEffect = false }) => {
      const world = await openWorld()
      const call = await fail(world)
      const before = await stateOf(world)
      const error = await failureOf(call)
      expect(HeadwaterError.is(error) && error.code).toBe(code)
      const { status, retryable, mayHaveEffects } = error as HeadwaterError
      expect({ status, retryable }).toEqual({ status: kind.status, retryable: kind.retryable })
      const after = await stateOf(world)
      if (hasEffect) expect(after).not.toEqual(before)
      else expect(after).toEqual(before)
      expect(mayHaveEffects || !hasEffect).toBe(true)
      // An error may exclude effects that its code allows, but not the other way round.
      expect(kind.mayHaveEffects || !mayHaveEffects).toBe(true)
      if (!retryable) return
      await heal?.(world)
      expect(await failureOf(retry === undefined ? call : () => retry(world))).toBeUndefined()
    },
  )
})

it('the codes are those of the table', () => {
  expect(Object.keys(CASES).sort()).toEqual(Object.keys(ERROR_KINDS).sort())
})
