import { describe, expect, it } from 'vitest'
import type { HeadwaterError } from '../../src/index.ts'
import { bodies } from '../support/index.ts'
import { connectUnreliably, failureOf, whileTimePasses } from './network.ts'

describe('requests that change nothing', () => {
  it.each(['refuse', 'drop', 'loseResponse'] as const)(
    'are repeated when the network fails (%s)',
    async (fault) => {
      const { clock, network, requests, stream } = await connectUnreliably()
      network[fault]({ nth: 1 })
      network[fault]({ nth: 2 })
      expect(await whileTimePasses(clock, stream.checkTail())).toEqual({ seqNum: 0, timestamp: 0 })
      expect(requests).toHaveLength(3)
    },
  )

  it.each([408, 429, 500, 502, 503, 504])('are repeated after status %i', async (status) => {
    const { clock, network, requests, stream } = await connectUnreliably()
    network.respond(status, { nth: 1, code: 'any' })
    await whileTimePasses(clock, stream.checkTail())
    expect(requests).toHaveLength(2)
  })

  it.each([
    [400, 'other'],
    [401, 'authn'],
    [403, 'permission_denied'],
    [404, 'other'],
    [501, 'other'],
  ])('fail at once with status %i', async (status, code) => {
    const { network, requests, stream } = await connectUnreliably()
    network.respond(status, { nth: 1, code: 'any' })
    expect(await failureOf(stream.checkTail())).toMatchObject({ code, mayHaveEffects: false })
    expect(requests).toHaveLength(1)
  })

  it('report each failure before they are repeated', async () => {
    const failures: string[] = []
    const onRetry = ({ code }: HeadwaterError) => failures.push(code)
    const { clock, network, stream } = await connectUnreliably({ retries: 2, onRetry })
    network.respond(429, { nth: 1, code: 'rate_limited' })
    network.drop({ nth: 2 })
    await whileTimePasses(clock, stream.checkTail())
    expect(failures).toEqual(['rate_limited', 'unavailable'])
    network.respond(403, { code: 'any' })
    await failureOf(stream.checkTail())
    expect(failures).toHaveLength(2)
  })

  it('fail after the number of repetitions that the options allow', async () => {
    const { clock, network, requests, stream } = await connectUnreliably({ retries: 2 })
    network.drop()
    const error = await whileTimePasses(clock, failureOf(stream.checkTail()))
    expect(error).toMatchObject({ code: 'unavailable', mayHaveEffects: false, retryable: true })
    expect(requests).toHaveLength(3)
  })

  it.each([
    ['retry-after-ms', '7000', 7_000],
    ['retry-after', '7', 7_000],
    ['retry-after', '86400', 30_000],
  ])('wait as long as %s: %s asks for, within 30 s', async (header, value, ms) => {
    const { clock, network, requests, stream } = await connectUnreliably()
    network.respond(429, { nth: 1, code: 'rate_limited', headers: { [header]: value } })
    const tail = stream.checkTail()
    await clock.advance(ms - 1)
    expect(requests).toHaveLength(1)
    await clock.advance(1)
    await tail
    expect(requests).toHaveLength(2)
  })

  it('are repeated after a silence of 30 seconds', async () => {
    const { clock, network, requests, stream } = await connectUnreliably()
    network.delay('1h', { nth: 1 })
    const tail = stream.checkTail()
    await clock.advance(29_999)
    expect(requests).toHaveLength(1)
    await clock.advance(1_000)
    await tail
    expect(requests).toHaveLength(2)
  })

  it('reject with the reason of a signal while they wait', async () => {
    const { clock, network, stream } = await connectUnreliably()
    network.drop()
    const control = new AbortController()
    const tail = failureOf(stream.checkTail({ signal: control.signal }))
    await clock.settle()
    control.abort('enough')
    expect(await tail).toBe('enough')
    expect(clock.pending).toBe(1)
  })
})

describe('appends', () => {
  it.each(['drop', 'loseResponse'] as const)(
    'are not repeated after %s if they have no condition',
    async (fault) => {
      const { network, requests, stream } = await connectUnreliably()
      network[fault]({ nth: 1 })
      expect(await failureOf(stream.append('a'))).toMatchObject({ code: 'unavailable', mayHaveEffects: true })
      expect(requests).toHaveLength(1)
    },
  )

  it('are repeated after failures without effects', async () => {
    const { clock, network, stream, ofEngine } = await connectUnreliably()
    network.refuse({ nth: 1 })
    network.respond(429, { nth: 2, code: 'rate_limited' })
    network.respond(409, { nth: 3, code: 'transaction_conflict' })
    expect((await whileTimePasses(clock, stream.append('a'))).end.seqNum).toBe(1)
    expect(bodies(await ofEngine.readBatch())).toEqual(['a'])
  })

  it.each(['drop', 'loseResponse'] as const)('are stored once with `matchSeqNum` after %s', async (fault) => {
    const { clock, network, stream, ofEngine } = await connectUnreliably()
    network[fault]({ nth: 1 })
    const input = [{ body: 'a', headers: [['k', 'v']] as [string, string][] }, 'b']
    const ack = await whileTimePasses(clock, stream.append(input, { matchSeqNum: 0 }))
    expect([ack.start.seqNum, ack.end.seqNum, ack.tail]).toEqual([0, 2, await ofEngine.checkTail()])
    expect(bodies(await ofEngine.readBatch())).toEqual(['a', 'b'])
  })

  it('report with `matchSeqNum` another record at their place', async () => {
    const { clock, network, stream, ofEngine } = await connectUnreliably()
    network.drop({ nth: 1 })
    const appending = failureOf(stream.append('a', { matchSeqNum: 0 }))
    await clock.settle()
    await ofEngine.append('of another writer')
    expect(await whileTimePasses(clock, appending)).toMatchObject({
      code: 'seq_num_mismatch',
      seqNum: 1,
      mayHaveEffects: false,
    })
  })

  it('are not acknowledged while their outcome is unknown, even with `matchSeqNum`', async () => {
    const { clock, network, stream, ofEngine } = await connectUnreliably()
    network.loseResponse({ nth: 1 })
    network.respond(403, { when: ({ method }) => method === 'GET', code: 'permission_denied' })
    const error = await whileTimePasses(clock, failureOf(stream.append('a', { matchSeqNum: 0 })))
    expect(error).toMatchObject({ code: 'seq_num_mismatch', mayHaveEffects: true })
    expect(bodies(await ofEngine.readBatch())).toEqual(['a'])
  })

  it('are sent in order, each once the one before has settled', async () => {
    const { clock, network, requests, stream, ofEngine } = await connectUnreliably()
    network.delay('5s', { nth: 1 })
    const appending = Promise.all(['a', 'b', 'c'].map((body) => stream.append(body)))
    await clock.advance(4_999)
    expect(requests).toHaveLength(1)
    await clock.advance(1)
    await appending
    expect(bodies(await ofEngine.readBatch())).toEqual(['a', 'b', 'c'])
  })

  it('come before the next one even if a signal abandons them', async () => {
    const { clock, network, stream, ofEngine } = await connectUnreliably()
    network.delay('5s', { nth: 1 })
    const control = new AbortController()
    const first = failureOf(stream.append('a', { signal: control.signal }))
    const second = stream.append('b')
    await clock.settle()
    control.abort('enough')
    expect(await first).toBe('enough')
    await clock.advance(5_000)
    await second
    expect(bodies(await ofEngine.readBatch())).toEqual(['a', 'b'])
  })
})

describe('other changes', () => {
  it('report what they created although the response is lost', async () => {
    const { hw, clock, network } = await connectUnreliably()
    network.loseResponse({ nth: 1 })
    expect((await whileTimePasses(clock, hw.createBasin('created-once'))).result).toBe('created')
    network.loseResponse({ nth: 2 })
    const creating = hw.basin('created-once').createStream('s')
    expect((await whileTimePasses(clock, creating)).result).toBe('created')
  })

  it('are repeated if they set a state', async () => {
    const { clock, network, stream, ofEngine } = await connectUnreliably()
    network.loseResponse({ nth: 1 })
    const change = { deleteOnEmpty: { minAgeSeconds: 7 } }
    expect(await whileTimePasses(clock, stream.reconfigure(change))).toMatchObject(change)
    expect(await ofEngine.config()).toMatchObject(change)
  })

  it('are not repeated if a repetition could concern something else', async () => {
    const { hw, network, requests, stream } = await connectUnreliably()
    network.loseResponse()
    const errors = await Promise.all([
      failureOf(stream.delete()),
      failureOf(hw.basin('basin').delete()),
      failureOf(hw.revokeAccessToken('token')),
    ])
    for (const error of errors) expect(error).toMatchObject({ code: 'unavailable', mayHaveEffects: true })
    expect(requests).toHaveLength(3)
  })
})
