// @module-tag nightly

import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Engine, open } from '../../../src/index.ts'
import { Prng } from '../../../src/runtime/random.ts'
import type { Storage } from '../../../src/storage/contract.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { FaultProxy } from '../../storage/s3/fault-proxy.ts'
import { CREDENTIALS, Gateway, HAS_VERSITYGW, withoutVersitygw } from '../../storage/s3/versitygw.ts'
import { bundleProgram, Child } from '../../support/child-process.ts'
import { campaignOf, replayCommand } from '../harness/campaign.ts'
import { Progress } from '../harness/progress.ts'
import { BASIN, bodyOf, STREAMS } from './children/records.ts'

const campaign = campaignOf('bucket', { rounds: 4, seed: 1, outage: 5 })
const { rounds, seed, outage } = campaign.options

/** What happens to the writer of a round. */
const EVENTS = ['kill', 'take over', 'pause', 'stop gateway'] as const

interface Plan {
  readonly event: (typeof EVENTS)[number]
  /** The number of acknowledgements before the event; with 0, it happens while the writer opens the bucket. */
  readonly acknowledgements: number
  /** When it happens then, in milliseconds after the start of the writer. */
  readonly startedMs: number
  /** The share of requests that suffer a fault. */
  readonly rate: number
}

function planOf(prng: Prng, round: number): Plan {
  return {
    event: EVENTS[round % EVENTS.length]!,
    acknowledgements: prng.chance(0.3) ? 0 : prng.below(120),
    startedMs: 300 + prng.below(1500),
    rate: prng.pick([0, 0.02, 0.1, 0.3]),
  }
}

describe.runIf(HAS_VERSITYGW)(`a bucket${withoutVersitygw}`, () => {
  let gateway: Gateway
  beforeAll(async () => {
    gateway = await Gateway.start()
  })
  afterAll(() => gateway?.remove())

  test(`keeps what its writers acknowledged (${rounds} rounds)`, { timeout: 0 }, async () => {
    const prng = new Prng(seed)
    const proxy = await FaultProxy.start(gateway.endpoint, prng)
    process.env.AWS_ACCESS_KEY_ID = CREDENTIALS.accessKeyId
    process.env.AWS_SECRET_ACCESS_KEY = CREDENTIALS.secretAccessKey
    const program = await bundleProgram(new URL('./children/writer.ts', import.meta.url))
    const bucket = await gateway.newBucket()
    const start = (name: string) => new Child(program, [name, proxy.endpoint, bucket])
    const progress = new Progress(campaign, 'rounds', rounds)
    const history = new History()
    for (let round = 0; round < rounds; round++) {
      const plan = planOf(prng, round)
      const writers: Child[] = []
      try {
        proxy.rate = plan.rate
        writers.push(start(`${round}-first`))
        if (plan.acknowledgements === 0) await setTimeout(plan.startedMs)
        else await acknowledged(writers[0]!, plan.acknowledgements)
        await happen(plan, gateway, writers, () => start(`${round}-second`))
        proxy.rate = 0
        await history.check(gateway, bucket, writers)
      } catch (error) {
        const replay = replayCommand('bucket', { rounds, seed, outage })
        const what = `round ${round}, ${JSON.stringify(plan)}`
        throw new Error(`${what}: ${(error as Error).message}\nReplay: ${replay}`, { cause: error })
      } finally {
        await Promise.all(writers.map((writer) => writer.kill()))
      }
      progress.pass()
    }
    await proxy.stop()
    const faults = [...proxy.faults].map(([fault, count]) => `${fault}: ${count}`)
    progress.close([`${history.acknowledged} acknowledgements`, ...faults].join(', '))
  })
})

/** Resolves when a writer has printed so many acknowledgements more. */
async function acknowledged(writer: Child, count: number): Promise<void> {
  const acks = () => writer.lines.filter((line) => line.startsWith('acked')).length
  const end = acks() + count
  while (acks() < end && !writer.hasEnded) await writer.printed(writer.lines.length + 1)
}

async function happen(plan: Plan, gateway: Gateway, writers: Child[], start: () => Child): Promise<void> {
  const [first] = writers as [Child]
  switch (plan.event) {
    case 'kill':
      await first.kill()
      writers.push(start())
      return acknowledged(writers[1]!, 20)
    case 'take over':
      writers.push(start())
      return acknowledged(writers[1]!, 20)
    case 'pause':
      process.kill(first.pid, 'SIGSTOP')
      writers.push(start())
      await acknowledged(writers[1]!, 60)
      process.kill(first.pid, 'SIGCONT')
      await acknowledged(writers[1]!, 20)
      return
    case 'stop gateway':
      await gateway.stop()
      await setTimeout(outage * 1000)
      await gateway.run()
      return acknowledged(first, 20)
  }
}

/** What writers have printed. */
class History {
  /** By stream and sequence number. */
  readonly #bodies = new Map(STREAMS.map((name) => [name, new Map<number, string>()]))
  readonly #trims = new Map(STREAMS.map((name) => [name, 0]))
  acknowledged = 0

  /** Takes the bucket over, and compares it with what was ever acknowledged. */
  async check(gateway: Gateway, bucket: string, writers: readonly Child[]): Promise<void> {
    for (const writer of writers) {
      if (writer.hasEnded) continue
      writer.send('end')
      while (!writer.hasEnded && !writer.lines.includes('ending')) {
        await writer.printed(writer.lines.length + 1)
      }
    }
    const found = await snapshotOf(gateway.storage(bucket, { takeOver: true, prefix: 'data' }))
    // What a writer acknowledges from now on must have been in the bucket.
    await setTimeout(200)
    await Promise.all(writers.map((writer) => writer.kill()))
    for (const { lines } of writers) for (const line of lines) this.#add(line)
    for (const name of STREAMS) this.#compare(name, found.get(name)!)
  }

  #add(line: string): void {
    const [kind, name = '', ...numbers] = line.split(' ')
    const [position = 0, first = 0, count = 0] = numbers.map(Number)
    if (kind === 'trims') this.#trims.set(name, Math.max(this.#trims.get(name)!, position))
    if (kind !== 'acked') return
    this.acknowledged++
    const writer = numbers[3]!
    const bodies = this.#bodies.get(name)!
    for (let i = 0; i < count; i++) {
      expect(bodies.has(position + i), `${name} ${position + i} was acknowledged twice`).toBe(false)
      bodies.set(position + i, bodyOf(writer, first + i))
    }
  }

  #compare(name: string, found: ReadonlyMap<number, string>): void {
    const first = found.keys().next().value ?? 0
    expect(first, `the first record of ${name}`).toBeLessThanOrEqual(this.#trims.get(name)!)
    for (const [seqNum, body] of this.#bodies.get(name)!) {
      if (seqNum >= first) expect(found.get(seqNum), `${name} ${seqNum}`).toBe(body)
    }
    const bodies = [...found.values()].filter((body) => body.includes('#'))
    expect(new Set(bodies).size, `different records of ${name}`).toBe(bodies.length)
  }
}

/** Reads all streams. Tries again if a writer takes the bucket over meanwhile. */
async function snapshotOf(storage: Storage): Promise<Map<string, Map<number, string>>> {
  for (let attempt = 1; ; attempt++) {
    let hw: Engine | undefined
    try {
      hw = await open({ storage, onBackgroundError: () => {} })
      const found = new Map<string, Map<number, string>>()
      for (const name of STREAMS) found.set(name, await recordsOf(hw, name))
      return found
    } catch (error) {
      const { cause } = error as Error
      if (attempt > 10 || !StorageFailure.is(cause) || cause.kind !== 'blocked') throw error
    } finally {
      await hw?.close().catch(() => {})
    }
  }
}

async function recordsOf(hw: Engine, name: string): Promise<Map<number, string>> {
  const basins = await hw.listBasins({ prefix: BASIN })
  if (basins.items.length === 0) return new Map()
  const { items } = await hw.basin(BASIN).listStreams({ prefix: name })
  if (items.length === 0) return new Map()
  const stream = hw.basin(BASIN, { autoCreate: false }).stream(name)
  const { seqNum: tail } = await stream.checkTail()
  const found = new Map<number, string>()
  if (tail === 0) return found
  const reading = stream.read({ seqNum: 0 }, { as: 'bytes' })
  let expected: number | undefined
  for await (const { records } of reading.batches()) {
    for (const { seqNum, body } of records) {
      expect(seqNum).toBe(expected ?? seqNum)
      expected = seqNum + 1
      found.set(seqNum, new TextDecoder().decode(body))
    }
  }
  expect(expected, `the end of ${name}`).toBe(tail)
  return found
}
