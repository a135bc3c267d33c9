import { expect, it, onTestFinished } from 'vitest'
import { open } from '../../../src/index.ts'
import { codeOf, onEveryKindOfStorage, openEngine, outcomeOf, testStorage } from '../../support/index.ts'

onEveryKindOfStorage(() => {
  it('makes a stream disappear at its time for all calls, and frees its name', async () => {
    const { hw, clock } = await openEngine()
    const basin = hw.basin('basin')
    const at = new Date(clock.now() + 5_000)
    await basin.createStream('s', {}, { expiry: { at } })
    await basin.stream('s').append('a')
    const [{ expiry } = {}] = (await basin.listStreams({ prefix: 's' })).items
    expect(expiry).toEqual({ at })
    await clock.advance(4_999)
    expect(await basin.stream('s').exists()).toBe(true)
    await clock.advance(1)
    const stream = hw.basin('basin', { autoCreate: false }).stream('s')
    for (const call of [
      () => stream.append('b'),
      () => stream.read().toArray(),
      () => stream.checkTail(),
      () => stream.config(),
      () => stream.delete(),
      () => stream.reconfigure({}),
    ]) {
      expect(await outcomeOf(call())).toBe('stream_not_found')
    }
    await basin.createStream('s')
    expect(await basin.stream('s').checkTail()).toMatchObject({ seqNum: 0 })
  })

  it('keeps an idle stream as long as it is appended to or read, by any engine', async () => {
    const storage = testStorage()
    const { hw, clock } = await openEngine({ storage })
    const basin = hw.basin('basin')
    await basin.createStream('s', {}, { expiry: { idleSeconds: 100 } })
    const others = storage.manifest.shared ? await open({ storage, clock }) : hw
    onTestFinished(() => others.close())
    for (let round = 0; round < 3; round++) {
      await clock.advance(90_000)
      await basin.stream('s').append('a')
      await clock.advance(90_000)
      await others.basin('basin').stream('s').read().toArray()
      await clock.settle()
    }
    await clock.advance(100_000)
    expect(await basin.stream('s').checkTail()).toMatchObject({ seqNum: 3 })
    await clock.advance(20_000)
    expect(await outcomeOf(basin.stream('s').checkTail())).toBe('stream_not_found')
    expect(await outcomeOf(others.basin('basin').stream('s').checkTail())).toBe('stream_not_found')
  })

  it('does not count tail checks as use', async () => {
    const { hw, clock } = await openEngine()
    const stream = hw.basin('basin').stream('s')
    await hw.basin('basin').createStream('s', {}, { expiry: { idleSeconds: 100 } })
    await clock.advance(90_000)
    await stream.checkTail()
    await clock.advance(20_000)
    expect(await outcomeOf(stream.checkTail())).toBe('stream_not_found')
  })

  it('deletes an expired stream in the background, which ends its followers', async () => {
    const { hw, clock } = await openEngine()
    await hw.basin('basin').createStream('s', {}, { expiry: { idleSeconds: 10 } })
    const follower = hw.basin('basin').stream('s').follow()[Symbol.asyncIterator]()
    const next = follower.next().then(() => 'a record', codeOf)
    await clock.advance(200_000)
    expect(await next).toBe('stream_deleted')
    expect(
      (await hw.basin('basin').listStreams({ prefix: 's' })).items.map(({ name }) => name),
    ).not.toContain('s')
  })

  it('keeps metadata and expiry over a restart and a reconfiguration', async () => {
    const storage = testStorage()
    const first = await openEngine({ storage })
    const at = new Date(first.clock.now() + 500_000)
    await first.hw.basin('basin').createStream('s', {}, { expiry: { at }, metadata: { kind: 'chat' } })
    await first.hw
      .basin('basin')
      .stream('s')
      .reconfigure({ retentionPolicy: { ageSeconds: 60 } })
    await first.hw.close()
    const hw = await open({ storage, clock: first.clock })
    onTestFinished(() => hw.close())
    const { items } = await hw.basin('basin').listStreams({ prefix: 's' })
    expect(items[0]).toMatchObject({ name: 's', metadata: { kind: 'chat' }, expiry: { at } })
    await first.clock.advance(500_000)
    expect(await hw.basin('basin').stream('s').exists()).toBe(false)
  })

  it('rejects malformed metadata and expiries, and names the limit', async () => {
    const { hw } = await openEngine()
    const create = (options: object) => hw.basin('basin').createStream('s', {}, options)
    const many = Object.fromEntries(Array.from({ length: 17 }, (_, index) => [`k${index}`, '']))
    await expect(create({ metadata: many })).rejects.toMatchObject({ code: 'invalid', field: 'metadata' })
    await expect(create({ metadata: many })).rejects.toThrow('16')
    await expect(create({ metadata: { a: 'x'.repeat(2_048) } })).rejects.toThrow('2048')
    await expect(create({ metadata: { a: 'x'.repeat(2_047) } })).resolves.toMatchObject({ result: 'created' })
    await expect(create({ metadata: { a: 1 } })).rejects.toThrow('strings')
    await expect(create({ expiry: {} })).rejects.toThrow('either')
    await expect(create({ expiry: { idleSeconds: -1 } })).rejects.toThrow('expiry.idleSeconds')
    await expect(create({ expiry: { at: new Date(Number.NaN) } })).rejects.toThrow('expiry.at')
    await expect(create({ expiry: { at: 1, idleSeconds: 1 } })).rejects.toThrow('either')
  })
})
