import { Agent } from 'node:http'
import { setInterval } from 'node:timers/promises'
import { afterAll, beforeAll, describe } from 'vitest'
import { postgres } from '../../../adapters/storage/postgres/index.ts'
import { type Engine, open } from '../../../src/index.ts'
import { Prng } from '../../../src/runtime/prng.ts'
import { Cluster, HAS_POSTGRES, withoutPostgres } from '../../storage/postgres/cluster.ts'
import { Services } from '../processes/services.ts'
import { campaign, workloadOf } from './campaign.ts'
import { EngineClient } from './clients/engine-client.ts'
import { HttpClient } from './clients/http-client.ts'
import { recordTarget } from './record-history.ts'
import type { OpenTarget } from './stream-client.ts'

const PROCESSES = 3

/** How often a process is killed, in milliseconds. */
const KILL_EVERY_MS = 350

describe.runIf(HAS_POSTGRES)(`PostgreSQL${withoutPostgres}`, () => {
  let cluster: Cluster
  let services: Services
  let hw: Engine
  const agent = new Agent({ keepAlive: true })
  beforeAll(async () => {
    cluster = await Cluster.start()
    hw = await open({ storage: postgres({ connectionString: cluster.connectionString }), autoCreate: false })
    services = await Services.start(cluster.connectionString, PROCESSES)
  })
  afterAll(async () => {
    agent.destroy()
    await services.stop()
    await hw.close()
    await cluster.dispose()
  })

  async function openTarget(basin: string, close = async () => {}): Promise<OpenTarget> {
    await hw.createBasin(basin, { createStreamOnAppend: true, createStreamOnRead: true })
    return {
      connect(stream, client) {
        const service = client % PROCESSES
        const http = new HttpClient(services.urlOf(service), basin, stream, agent)
        const whenReady = async <Result>(call: () => Promise<Result>) => {
          await services.ready(service)
          return call()
        }
        return {
          append: (call) => whenReady(() => http.append(call)),
          read: () => whenReady(() => http.read()),
          checkTail: () => whenReady(() => http.checkTail()),
        }
      },
      reader: (stream) => new EngineClient(hw.basin(basin).stream(stream), 'pages'),
      close,
    }
  }

  campaign('three processes on PostgreSQL', ['appended', 'refused', 'read', 'tail'], async (seed) =>
    recordTarget(await openTarget(`steady-${seed}`), workloadOf(seed)),
  )

  campaign(
    'three processes on PostgreSQL, and the database, that are killed',
    ['appended', 'refused', 'read', 'tail', 'unknown', 'failed'],
    async (seed) => {
      const prng = new Prng(seed)
      let isFinished = false
      const killing = (async () => {
        for await (const _ of setInterval(KILL_EVERY_MS)) {
          if (isFinished) return
          if (prng.chance(0.3)) {
            await cluster.kill()
            await cluster.run()
          } else {
            await services.restart(prng.below(PROCESSES))
          }
        }
      })()
      const target = await openTarget(`killed-${seed}`, async () => {
        isFinished = true
        await killing
      })
      return recordTarget(target, workloadOf(seed))
    },
  )
})
