import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { connect } from '../../adapters/client/index.ts'
import { HeadwaterError } from '../../src/index.ts'
import { outcomeOf } from '../support/index.ts'
import { connectTo, connectUnreliably, failureOf, whileTimePasses } from './network.ts'

const KEY = Buffer.alloc(32, 7).toString('base64')
const OTHER_KEY = Buffer.alloc(32, 8).toString('base64')

describe('access tokens', () => {
  it('are asked for once, and once more when the server rejects one', async () => {
    const { engine, hw, stream } = await tokenService()
    expect(await outcomeOf(stream.append('a'))).toBe('ok')
    expect(await outcomeOf(stream.checkTail())).toBe('ok')
    expect(asked).toBe(1)
    await engine.revokeAccessToken('token-1')
    expect(await Promise.all([outcomeOf(stream.checkTail()), outcomeOf(hw.listBasins())])).toEqual([
      'ok',
      'ok',
    ])
    expect(asked).toBe(2)
  })

  it('fail the request when they are rejected twice', async () => {
    let calls = 0
    const getToken = () => {
      calls++
      return 'wrong'
    }
    const { stream } = await connectUnreliably({ handler: { auth: 'token' }, getToken })
    expect(await outcomeOf(stream.checkTail())).toBe('authn')
    expect(calls).toBe(2)
    expect(await outcomeOf(stream.checkTail())).toBe('authn')
    expect(calls).toBe(3)
  })

  it('are replaced when they end during a session', async () => {
    const { clock, engine, stream, ofEngine } = await tokenService()
    const following = stream.follow()[Symbol.asyncIterator]()
    const next = following.next()
    await clock.settle()
    await engine.revokeAccessToken('token-1')
    await clock.advance('5s')
    await ofEngine.append('later')
    expect((await whileTimePasses(clock, next)).value?.body).toBe('later')
    expect(asked).toBe(2)
    await following.return()
  })

  const never = new Promise<string>(() => {})
  const offline = () => Promise.reject(new TypeError('Failed to fetch'))
  const page = async () => '<html>502</html>'
  it.each([
    ['fails without a network', offline, '`getToken` failed: Failed to fetch'],
    ['throws a text', () => Promise.reject('offline'), '`getToken` failed: offline'],
    ['throws nothing', () => Promise.reject(undefined), '`getToken` failed: undefined'],
    ['returns a page', page, '`getToken` must return a token of visible ASCII characters without `<>{}"`'],
    ['never settles', () => never, '`getToken` did not settle within 30000 ms'],
  ])(
    'are asked for again while `getToken` %s, and end in a retryable error',
    async (_, getToken, message) => {
      let calls = 0
      const { stream, requests, clock } = await connectUnreliably({
        retries: 2,
        getToken: () => {
          calls++
          return getToken()
        },
      })
      const error = await whileTimePasses(clock, failureOf(stream.append('a')))
      expect(error).toMatchObject({ code: 'unavailable', message, retryable: true, mayHaveEffects: false })
      expect(calls).toBe(3)
      expect(requests).toHaveLength(0)
    },
  )

  it('are used once `getToken` recovers', async () => {
    const answers = [offline, page, () => never, async () => 'token']
    const { stream, requests, clock } = await connectUnreliably({ getToken: () => answers.shift()!() })
    await whileTimePasses(clock, stream.append('a'))
    expect(requests.map(({ headers }) => headers.get('authorization'))).toEqual(['Bearer token'])
  })

  it('are kept if they come too late for the request', async () => {
    let give: (token: string) => void = () => {}
    let calls = 0
    const late = new Promise<string>((resolve) => {
      give = resolve
    })
    const { stream, requests, clock } = await connectUnreliably({
      retries: 0,
      getToken: () => {
        calls++
        return late
      },
    })
    expect(await whileTimePasses(clock, outcomeOf(stream.append('a')))).toBe('unavailable')
    give('token')
    await clock.settle()
    expect(await outcomeOf(stream.append('b'))).toBe('ok')
    expect([calls, requests.length]).toEqual([1, 1])
  })

  it('leave no timer behind if the client closes while `getToken` is pending', async () => {
    const { hw, stream, clock } = await connectUnreliably({ getToken: () => never })
    const before = clock.pending
    const outcome = outcomeOf(stream.append('a'))
    await clock.settle()
    expect(clock.pending).toBeGreaterThan(before)
    await hw.close()
    expect(await outcome).toBe('closed')
    expect(clock.pending).toBe(before)
  })

  it('report an error of headwater that `getToken` throws, without a repetition', async () => {
    const problem = new HeadwaterError('authn', 'signed out')
    const { stream, requests } = await connectUnreliably({ getToken: () => Promise.reject(problem) })
    expect(await failureOf(stream.checkTail())).toBe(problem)
    expect(await failureOf(stream.follow().toArray())).toBe(problem)
    expect(requests).toHaveLength(0)
  })

  it('get the original error if they do not permit to create', async () => {
    const { engine, ...service } = await connectUnreliably({
      handler: { auth: 'token' },
      getToken: () => token,
    })
    const token = await engine.issueAccessToken({
      id: 'appender',
      scope: { basins: { prefix: '' }, streams: { prefix: '' }, ops: ['append', 'read', 'check-tail'] },
    })
    expect(await outcomeOf(service.stream.append('a'))).toBe('ok')
    expect(await outcomeOf(service.hw.basin('basin').stream('missing').append('a'))).toBe('stream_not_found')
    expect(await outcomeOf(service.hw.basin('missing').stream('s').append('a'))).toBe('basin_not_found')
  })
})

let asked = 0

/** A service that requires tokens, and a client whose `getToken` issues one at each call. */
async function tokenService() {
  asked = 0
  const service = await connectUnreliably({
    handler: { auth: 'token' },
    getToken: async () => {
      asked++
      const all = { prefix: '' }
      const ops = { read: true, write: true }
      return service.engine.issueAccessToken({
        id: `token-${asked}`,
        scope: {
          basins: all,
          streams: all,
          accessTokens: all,
          opGroups: { account: ops, basin: ops, stream: ops },
        },
      })
    },
  })
  return service
}

describe('encryption keys', () => {
  it('are sent with requests for records only', async () => {
    const { requests, hw, engine } = await connectUnreliably()
    await engine.createBasin('sealed', { streamCipher: 'aes-256-gcm' })
    const stream = hw.basin('sealed').stream('s', { encryptionKey: Buffer.alloc(32, 7) })
    await stream.append('secret')
    expect((await stream.read().toArray()).map(({ body }) => body)).toEqual(['secret'])
    await stream.checkTail()
    await stream.config()
    const withKey = requests.filter(({ headers }) => headers.has('svc-encryption-key'))
    for (const { url, headers } of withKey) {
      expect(new URL(url).pathname).toBe('/v1/streams/s/records')
      expect(headers.get('svc-encryption-key')).toBe(KEY)
    }
    expect(withKey.length).toBeGreaterThan(1)
  })

  it('cause errors when they are missing, malformed or wrong', async () => {
    const { hw, engine } = await connectUnreliably()
    await engine.createBasin('sealed', { streamCipher: 'aes-256-gcm' })
    const basin = hw.basin('sealed')
    await basin.stream('s', { encryptionKey: KEY }).append('secret')
    const codes = await Promise.all(
      [{}, { encryptionKey: 'short' }, { encryptionKey: `${KEY}\n` }, { encryptionKey: OTHER_KEY }].map(
        (options) => outcomeOf(basin.stream('s', options).readBatch()),
      ),
    )
    expect(codes).toEqual(['encryption_key_invalid', 'encryption_key_invalid', 'ok', 'decryption_failed'])
    expect(await failureOf(basin.stream('s').append('x'))).toMatchObject({ field: 'encryptionKey' })
  })
})

describe('secrets', () => {
  it('are in no error', async () => {
    const secrets = ['top-secret-path', 'top-secret-token', KEY]
    const { clock, hw } = await connectTo(
      () => {
        throw new TypeError('fetch failed', {
          cause: Object.assign(new Error('reset'), { code: 'ECONNRESET' }),
        })
      },
      { url: 'http://localhost/top-secret-path', token: 'top-secret-token' },
    )
    const stream = hw.basin('basin').stream('stream', { encryptionKey: KEY })
    const errors = [
      await whileTimePasses(clock, failureOf(stream.append('a'))),
      await whileTimePasses(clock, failureOf(stream.checkTail())),
      await whileTimePasses(clock, failureOf(stream.follow().toArray())),
      hw,
      stream,
    ]
    for (const secret of secrets) expect(inspect(errors, { depth: 10 })).not.toContain(secret)
  })

  it.each([
    ['http://user:top-secret@localhost/'],
    ['http://localhost/?token=top-secret'],
    ['http://localhost/#top-secret'],
    ['ftp://top-secret'],
    ['top-secret'],
  ])('are not repeated when an address is rejected: %s', async (url) => {
    const error = await failureOf(connect({ url }))
    expect(error).toMatchObject({ code: 'invalid', field: 'url' })
    expect(error.message).not.toContain('top-secret')
  })

  it.each<[object]>([
    [{ token: 'a b' }],
    [{ token: 'a', getToken: () => 'b' }],
    [{ headerPrefix: 'acme' }],
    [{ requestTimeoutMs: 0 }],
    [{ retries: -1 }],
    [{ limits: { sessionInFlightBytes: 5 } }],
    [{ tokn: 'a' }],
  ])('are checked as the other options are: %j', async (options) => {
    expect(await failureOf(connect({ url: 'http://localhost', ...options }))).toMatchObject({
      code: 'invalid',
    })
  })
})
