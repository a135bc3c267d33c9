import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { Prng } from '../../../src/runtime/prng.ts'
import { Cluster, HAS_POSTGRES, withoutPostgres } from '../../storage/postgres/cluster.ts'
import { HAS_PGBOUNCER, PgBouncer, withoutPgBouncer } from '../../storage/postgres/pgbouncer.ts'
import { WireProxy } from '../../storage/postgres/wire-proxy.ts'
import { campaignOf } from '../harness/campaign.ts'
import { Progress } from '../harness/progress.ts'
import { checkLives } from './check-lives.ts'
import { LivedStream } from './lived-stream.ts'
import { Services } from './services.ts'
import { StatementFaults } from './statement-faults.ts'

const campaign = campaignOf('processes', { rounds: 3, seed: 1 })
const { rounds, seed } = campaign.options
const PROCESSES = 3
const WRITERS = 6
const CALLS_PER_ROUND = 60
const TRIM_GRACE_MS = 300
/** Frequent trims double the grace period. The rest is for clocks. */
const GRACE = { trimMs: 2 * TRIM_GRACE_MS + 500, expiryMs: 250 }
describe.runIf(HAS_POSTGRES)(`streams that three processes delete and create again${withoutPostgres}`, () => {
  const timeout = 300_000 + rounds * 60_000
  it(
    `show no record of a former one, and all others, while the database fails (${rounds} rounds)`,
    {
      timeout,
    },
    () => run(async (cluster) => cluster),
  )

  it.runIf(HAS_PGBOUNCER)(
    `do the same behind a pooler in transaction mode${withoutPgBouncer}`,
    {
      timeout,
    },
    () =>
      run(async (cluster) => {
        const pooler = await PgBouncer.start(cluster.port)
        onTestFinished(() => pooler.dispose())
        return pooler
      }),
  )

  /** `front` is what the proxy connects to. */
  async function run(front: (cluster: Cluster) => Promise<{ readonly port: number }>): Promise<void> {
    const prng = new Prng(seed)
    const faults = new StatementFaults(new Prng(seed + 1))
    const cluster = await Cluster.start()
    onTestFinished(() => cluster.dispose())
    const { port } = await front(cluster)
    const proxy = await WireProxy.start({ port: () => port, actionOf: () => faults.next() })
    onTestFinished(() => proxy.close())
    const services = await Services.start(proxy.connectionString, PROCESSES, TRIM_GRACE_MS)
    onTestFinished(() => services.stop())
    const urlOf = async (service: number) => {
      await services.ready(service)
      return services.urlOf(service)
    }
    const anyUrl = () => urlOf(prng.below(PROCESSES))

    const streams = [new LivedStream('lives-one', 's'), new LivedStream('lives-two', 's')]
    for (const stream of streams) await stream.create(prng, anyUrl)
    faults.isActive = true
    let isFinished = false
    const writing = Array.from({ length: WRITERS }, async (_, writer) => {
      const own = new Prng(seed * 1_000 + writer)
      for (let serial = 0; !isFinished; serial++) {
        const url = await urlOf(writer % PROCESSES)
        await own.pick(streams).perform(own, url, `${writer}-${serial}`)
      }
    })
    const ended = () => streams.reduce((sum, { calls }) => sum + calls, 0)
    const furtherCalls = async (count: number): Promise<void> => {
      const enough = ended() + count
      await vi.waitUntil(() => ended() >= enough)
    }

    const progress = new Progress(campaign, 'rounds', rounds)
    for (let round = 0; round < rounds; round++) {
      for (let change = 0; change < 2; change++) {
        await furtherCalls(CALLS_PER_ROUND / 4)
        for (const stream of streams) await stream.configure(prng, await anyUrl())
      }
      if (round % 3 === 1) {
        await faults.without(() => services.restart(prng.below(PROCESSES)))
      }
      if (round % 3 === 2) proxy.cutAll()
      await furtherCalls(CALLS_PER_ROUND / 4)
      for (const [i, stream] of streams.entries()) {
        // A basin is removed by the holder of a lease, which a killed process keeps for a while.
        await stream.delete(anyUrl, round % 3 === 0 && i === 0 ? 'basin' : 'stream')
        // What an attempt has left on its way must not meet the next stream.
        await vi.waitUntil(() => proxy.late === 0)
        await stream.create(prng, anyUrl)
      }
      progress.pass()
    }
    await furtherCalls(CALLS_PER_ROUND)
    isFinished = true
    await Promise.all(writing)
    faults.isActive = false

    let acknowledged = 0
    for (const stream of streams) {
      for (let service = 0; service < PROCESSES; service++) {
        await vi.waitUntil(async () => stream.readAll(await urlOf(service)))
      }
      expect(checkLives(stream.history, GRACE)).toEqual([])
      expect(stream.history.lives.length).toBe(rounds + 1)
      acknowledged += stream.history.appends.filter(({ outcome }) => outcome.kind === 'appended').length
    }
    expect(acknowledged).toBeGreaterThan(rounds)
    progress.close(`${acknowledged} appends acknowledged, faults: ${JSON.stringify(faults.counts)}`)
  }
})
