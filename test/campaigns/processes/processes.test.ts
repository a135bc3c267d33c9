import { Agent } from 'node:http'
import { setImmediate } from 'node:timers/promises'
import { describe, expect, it, vi } from 'vitest'
import { postgres } from '../../../adapters/storage/postgres/index.ts'
import { open, type Stream } from '../../../src/index.ts'
import { Prng } from '../../../src/runtime/prng.ts'
import { Cluster, HAS_POSTGRES, withoutPostgres } from '../../storage/postgres/cluster.ts'
import { FORWARD, WireProxy } from '../../storage/postgres/wire-proxy.ts'
import { campaignOf } from '../harness/campaign.ts'
import { Progress } from '../harness/progress.ts'
import { HttpClient } from '../linearizability/clients/http-client.ts'
import type { AppendOutcome } from '../linearizability/operations.ts'
import { Services } from './services.ts'

const campaign = campaignOf('processes', { rounds: 3, seed: 1 })
const { rounds, seed } = campaign.options
const PROCESSES = 3
const WRITERS = 9
const BASIN = 'processes'
const STREAMS = ['a', 'b']

interface Attempt {
  readonly bodies: readonly string[]
  readonly outcome: AppendOutcome
}

describe.runIf(HAS_POSTGRES)(`three processes on one database${withoutPostgres}`, () => {
  it(`lose and repeat nothing while they, and the database, are killed (${rounds} rounds)`, {
    timeout: 300_000 + rounds * 60_000,
  }, async () => {
    const prng = new Prng(seed)
    let primary = await Cluster.start()
    const proxy = await WireProxy.start({ port: () => primary.port, fateOf: () => FORWARD })
    const hw = await open({
      storage: postgres({ connectionString: proxy.connectionString }),
      autoCreate: false,
    })
    await hw.createBasin(BASIN)
    for (const name of STREAMS) await hw.basin(BASIN).createStream(name)
    const services = await Services.start(proxy.connectionString, PROCESSES)
    const agent = new Agent({ keepAlive: true })
    const stop = new AbortController()
    const followed = new Map(STREAMS.map((name) => [name, [] as string[]]))
    const following = STREAMS.map((name) =>
      follow(hw.basin(BASIN).stream(name), followed.get(name)!, stop.signal),
    )

    let isOver = false
    const attempts = new Map(STREAMS.map((name) => [name, [] as Attempt[]]))
    const writing = Array.from({ length: WRITERS }, async (_, writer) => {
      const service = writer % PROCESSES
      const own = new Prng(seed * 1_000 + writer)
      for (let serial = 0; !isOver; serial++) {
        const name = own.pick(STREAMS)
        const bodies = Array.from({ length: 1 + own.below(4) }, (_, i) => `${writer}-${serial}-${i}`)
        await services.ready(service)
        const client = new HttpClient(services.urlOf(service), BASIN, name, agent)
        attempts.get(name)!.push({ bodies, outcome: await client.append({ bodies }) })
      }
    })

    const attempted = () => [...attempts.values()].reduce((sum, { length }) => sum + length, 0)
    const furtherAttempts = async (count: number): Promise<void> => {
      const enough = attempted() + count
      await vi.waitUntil(() => attempted() >= enough)
    }

    const progress = new Progress(campaign, 'rounds', rounds)
    for (let round = 0; round < rounds; round++) {
      await furtherAttempts(20 + prng.below(50))
      const kind = round % 3
      if (kind === 0) await services.restart(prng.below(PROCESSES))
      if (kind === 1) {
        await primary.kill()
        await primary.run()
      }
      if (kind === 2) {
        const standby = await primary.standby()
        await furtherAttempts(prng.below(50))
        await primary.dispose()
        await standby.promote()
        primary = standby
        proxy.cutAll()
      }
      progress.pass()
    }
    await furtherAttempts(50)
    isOver = true
    await Promise.all(writing)

    let acknowledged = 0
    for (const name of STREAMS) {
      const stored = await bodiesOf(hw.basin(BASIN).stream(name))
      acknowledged += check(stored, attempts.get(name)!)
      const from = followed.get(name)!
      await vi.waitUntil(() => from.length >= stored.length)
      expect(from, `records that a follower of ${name} got`).toEqual(stored)
    }
    expect(acknowledged).toBeGreaterThan(rounds)
    progress.close(`${acknowledged} appends acknowledged`)
    stop.abort()
    await Promise.all(following)
    agent.destroy()
    await services.stop()
    await hw.close()
    await proxy.close()
    await primary.dispose()
  })
})

/** Resolves to the bodies of all records, whose sequence numbers have no gap. */
async function bodiesOf(stream: Stream): Promise<string[]> {
  const { seqNum: tail } = await stream.checkTail()
  const bodies: string[] = []
  for await (const { seqNum, body } of stream.readSession({ seqNum: 0, count: tail })) {
    expect(seqNum).toBe(bodies.length)
    bodies.push(body)
  }
  expect(bodies.length).toBe(tail)
  return bodies
}

/** Ends with the signal. Reads on where it was after a failure. */
async function follow(stream: Stream, bodies: string[], signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      for await (const { seqNum, body } of stream.readSession({ seqNum: bodies.length }, { signal })) {
        if (seqNum !== bodies.length) throw new Error(`record ${seqNum} after ${bodies.length} records`)
        bodies.push(body)
      }
    } catch (error) {
      if (signal.aborted) return
      if (error instanceof Error && error.message.startsWith('record ')) throw error
      await setImmediate()
    }
  }
}

/** Checks every append against what is stored. Returns how many were acknowledged. */
function check(stored: readonly string[], attempts: readonly Attempt[]): number {
  expect(new Set(stored).size, 'records that are stored twice').toBe(stored.length)
  const positions = new Map(stored.map((body, seqNum) => [body, seqNum]))
  let acknowledged = 0
  for (const { bodies, outcome } of attempts) {
    const at = positions.get(bodies[0]!)
    if (outcome.kind === 'appended') {
      acknowledged++
      expect(stored.slice(outcome.start, outcome.end), 'records that were acknowledged').toEqual(bodies)
    } else if (outcome.kind !== 'unknown') {
      expect(at, `an append that had no effect: ${outcome.kind}`).toBeUndefined()
    } else if (at !== undefined) {
      expect(stored.slice(at, at + bodies.length), 'an append of unknown outcome').toEqual(bodies)
    }
  }
  return acknowledged
}
