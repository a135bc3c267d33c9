import { Agent } from 'node:http'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { postgres } from '../../../adapters/storage/postgres/index.ts'
import { open } from '../../../src/index.ts'
import { Prng } from '../../../src/runtime/prng.ts'
import { Cluster, HAS_POSTGRES, withoutPostgres } from '../../storage/postgres/cluster.ts'
import { WireProxy } from '../../storage/postgres/wire-proxy.ts'
import { campaignOf } from '../harness/campaign.ts'
import { Progress } from '../harness/progress.ts'
import { HttpClient } from '../linearizability/clients/http-client.ts'
import { checkLog } from './check-log.ts'
import { ObservedStream } from './observed-stream.ts'
import { Services } from './services.ts'
import { StatementFaults } from './statement-faults.ts'

const campaign = campaignOf('processes', { rounds: 3, seed: 1 })
const { rounds, seed } = campaign.options
const PROCESSES = 3
const WRITERS = 9
const BASIN = 'processes'
/** A trim is visible at once, which is the strictest rule. */
const TRIM_GRACE_MS = 0

describe.runIf(HAS_POSTGRES)(`three processes on one database${withoutPostgres}`, () => {
  it(`keep every promise while they, and the database, are killed (${rounds} rounds)`, {
    timeout: 300_000 + rounds * 60_000,
  }, async () => {
    const prng = new Prng(seed)
    const streams = ['a', 'b'].map((name) => new ObservedStream(name))
    const faults = new StatementFaults(new Prng(seed + 1))
    let primary = await Cluster.start()
    onTestFinished(() => primary.dispose())
    const proxy = await WireProxy.start({ port: () => primary.port, actionOf: () => faults.next() })
    onTestFinished(() => proxy.close())
    const hw = await open({
      storage: postgres({ connectionString: proxy.connectionString }),
      autoCreate: false,
      trimGraceMs: TRIM_GRACE_MS,
    })
    onTestFinished(() => hw.close())
    await hw.createBasin(BASIN)
    for (const { name } of streams) await hw.basin(BASIN).createStream(name)
    const services = await Services.start(proxy.connectionString, PROCESSES, TRIM_GRACE_MS)
    onTestFinished(() => services.stop())
    const agent = new Agent({ keepAlive: true })
    onTestFinished(() => agent.destroy())
    const clientOf = (service: number, { name }: ObservedStream) =>
      new HttpClient(services.urlOf(service), BASIN, name, agent)

    const stop = new AbortController()
    onTestFinished(() => stop.abort())
    const following = streams.flatMap((stream) => [
      stream.follow(hw.basin(BASIN).stream(stream.name), stop.signal),
      ...Array.from({ length: PROCESSES }, (_, service) =>
        stream.poll(clientOf(service, stream), () => services.ready(service), stop.signal),
      ),
    ])

    let isFinished = false
    const writing = Array.from({ length: WRITERS }, async (_, writer) => {
      const service = writer % PROCESSES
      const own = new Prng(seed * 1_000 + writer)
      for (let serial = 0; !isFinished; serial++) {
        const stream = own.pick(streams)
        await services.ready(service)
        await stream.perform(own, clientOf(service, stream), `${writer}-${serial}`)
      }
    })

    faults.isActive = true
    const ended = () => streams.reduce((sum, { calls }) => sum + calls, 0)
    const furtherCalls = async (count: number): Promise<void> => {
      const enough = ended() + count
      await vi.waitUntil(() => ended() >= enough)
    }

    const progress = new Progress(campaign, 'rounds', rounds)
    for (let round = 0; round < rounds; round++) {
      await furtherCalls(20 + prng.below(50))
      const kind = round % 3
      if (kind === 0) await faults.without(() => services.restart(prng.below(PROCESSES)))
      if (kind === 1) {
        await primary.kill()
        await primary.run()
      }
      if (kind === 2) {
        const standby = await primary.standby()
        await furtherCalls(prng.below(50))
        await primary.dispose()
        await standby.promote()
        primary = standby
        proxy.cutAll()
      }
      progress.pass()
    }
    await furtherCalls(50)
    isFinished = true
    await Promise.all(writing)
    faults.isActive = false

    let acknowledged = 0
    for (const stream of streams) {
      for (let service = 0; service < PROCESSES; service++) {
        const client = clientOf(service, stream)
        await vi.waitUntil(() => stream.observeTail(client))
        await vi.waitUntil(() => stream.observeRead(client, 0))
      }
      const { seqNum: tail } = await hw.basin(BASIN).stream(stream.name).checkTail()
      const [log, ...others] = stream.followed
      for (const records of stream.followed) await vi.waitUntil(() => records.length >= tail)
      expect(log!.length).toBe(tail)
      for (const records of others) expect(records).toEqual(log)
      expect(checkLog(log!, stream.observations)).toEqual([])
      acknowledged += stream.observations.filter(
        (seen) => seen.kind === 'append' && seen.outcome.kind === 'appended',
      ).length
    }
    expect(acknowledged).toBeGreaterThan(rounds)
    progress.close(`${acknowledged} appends acknowledged`)
    stop.abort()
    await Promise.all(following)
  })
})
