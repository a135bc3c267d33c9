// @module-tag slow

import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { postgres } from '../../../adapters/storage/postgres/index.ts'
import { type Engine, open } from '../../../src/index.ts'
import { codeOf, outcomeOf, readAll } from '../../support/index.ts'
import { Cluster, HAS_POSTGRES, withoutPostgres } from './cluster.ts'
import { newSchema } from './schemas.ts'
import { FORWARD, WireProxy } from './wire-proxy.ts'

/** A server with a copy that follows it, and an address that leads to the one or the other. */
async function startPair() {
  const primary = await Cluster.start()
  onTestFinished(() => primary.dispose())
  const replica = await primary.standby({ isSynchronous: false })
  onTestFinished(() => replica.dispose())
  let current = primary
  const proxy = await WireProxy.start({ port: () => current.port, actionOf: () => FORWARD })
  onTestFinished(() => proxy.close())
  return {
    primary,
    replica,
    connectionString: proxy.connectionString,
    /** The copy gets nothing more. */
    stopCopying: async () => {
      await replica.catchUpWith(primary)
      await replica.kill()
    },
    failOver: async () => {
      await primary.kill()
      await replica.run()
      await replica.promote()
      current = replica
    },
  }
}

async function opened(connectionString: string, schema: string, listen: boolean) {
  const errors: string[] = []
  const hw = await open({
    storage: postgres({ connectionString, schema, listen }),
    onBackgroundError: (error) => errors.push(String(error)),
  })
  onTestFinished(() => hw.close())
  return { hw, errors, stream: hw.basin('basin').stream('stream') }
}

function followed(hw: Engine): string[] {
  const received: string[] = []
  const follow = async () => {
    for await (const { body } of hw.basin('basin').stream('stream').follow({ seqNum: 0 })) received.push(body)
    return 'end'
  }
  void follow()
    .catch(codeOf)
    .then((end) => received.push(end))
  return received
}

describe.runIf(HAS_POSTGRES)(`a replica that takes over${withoutPostgres}`, () => {
  // More records of another process hide that the tail went back.
  test.each([
    ['less than was confirmed', 0],
    ['as much as was confirmed', 2],
    ['more than was confirmed', 5],
  ])('and lags behind is noticed if it has got %s', async (_, later) => {
    const pair = await startPair()
    const schema = newSchema()
    const { hw, errors, stream } = await opened(pair.connectionString, schema, false)
    for (const body of ['a', 'b', 'c']) await stream.append(body)
    await pair.stopCopying()
    const session = await stream.appendSession()
    await (await session.submit('lost 1')).ack()
    await (await session.submit('lost 2')).ack()
    const received = followed(hw)
    await vi.waitUntil(() => received.length === 5)
    await pair.failOver()
    // A process that does not know what was lost.
    const other = await opened(pair.replica.connectionString, schema, false)
    for (let i = 0; i < later; i++) await other.stream.append(`other ${i}`)
    await vi.waitUntil(() => received.length === 6)
    expect(received).toEqual(['a', 'b', 'c', 'lost 1', 'lost 2', 'storage'])
    expect(await outcomeOf((await session.submit('next')).ack())).toBe('storage')
    const lost = errors.filter((error) => error.includes('has lost records before 5 that it had confirmed'))
    expect(lost.length).toBe(1)
    expect(hw.stats().lostTails).toBe(1)
    // The process goes on with what is there.
    await stream.append('new')
    const others = Array.from({ length: later }, (_, i) => `other ${i}`)
    expect(await readAll(stream)).toEqual(['a', 'b', 'c', ...others, 'new'])
  })

  test('and lags behind ends a reader of history before it delivers other records', async () => {
    const pair = await startPair()
    const schema = newSchema()
    const { stream } = await opened(pair.connectionString, schema, false)
    await stream.append('kept')
    await pair.stopCopying()
    const large = (name: string) =>
      Array.from({ length: 12 }, (_, i) => `${name} ${i} ${'x'.repeat(900_000)}`)
    for (const body of large('lost')) await stream.append(body)
    const received: string[] = []
    const batches = stream.read({ seqNum: 1, count: 12 }).batches()
    const receive = async () => {
      const { done, value } = await batches.next()
      for (const { body } of value?.records ?? []) received.push(body.slice(0, 5))
      return done
    }
    await receive()
    await pair.failOver()
    const other = await opened(pair.replica.connectionString, schema, false)
    for (const body of large('other')) await other.stream.append(body)
    const rest = async () => {
      while (!(await receive()));
    }
    expect(await outcomeOf(rest())).toBe('storage')
    expect(new Set(received)).toEqual(new Set(['lost ']))
  })

  test('and has everything is not noticed by followers', async () => {
    const pair = await startPair()
    const { hw, errors, stream } = await opened(pair.connectionString, newSchema(), false)
    for (const body of ['a', 'b']) await stream.append(body)
    const received = followed(hw)
    await vi.waitUntil(() => received.length === 2)
    await pair.stopCopying()
    await pair.failOver()
    await stream.append('c')
    await vi.waitUntil(() => received.length === 3)
    expect(received).toEqual(['a', 'b', 'c'])
    expect(hw.stats().lostTails).toBe(0)
    expect(errors.filter((error) => error.includes('lost'))).toEqual([])
  })
})
