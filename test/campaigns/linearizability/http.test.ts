// @module-tag nightly

import { Agent } from 'node:http'
import { S2 } from '@s2-dev/streamstore'
import { afterAll, expect } from 'vitest'
import { serve } from '../../../adapters/node/index.ts'
import { memory } from '../../../adapters/storage/memory/index.ts'
import { open } from '../../../src/index.ts'
import { Prng } from '../../../src/runtime/prng.ts'
import { campaign, HAS_ALL_OUTCOMES, workloadOf } from './campaign.ts'
import { EngineClient } from './clients/engine-client.ts'
import { HttpClient } from './clients/http-client.ts'
import { PublishedClient } from './clients/published-client.ts'
import {
  ANSWER_FAULTS,
  type ConnectionFault,
  faultyConnections,
  REQUEST_FAULTS,
  seededFaults,
} from './connection-faults.ts'
import { recordTarget } from './record-history.ts'
import type { OpenTarget } from './stream-client.ts'

const BASIN = 'linearizability'

interface HttpTarget extends OpenTarget {
  readonly faults: ReadonlyMap<ConnectionFault, number>
  /** Unexpected errors of the server. */
  readonly errors: readonly unknown[]
}

/** The probability of a fault for each piece on a connection. */
const PROBABILITY = 0.01

/**
 * An engine behind a server on a real port, with clients whose connections are cut. Half of them send
 * independent requests, the others use sessions.
 */
async function openHttp(seed: number): Promise<HttpTarget> {
  const hw = await open({ storage: memory(), autoCreate: false })
  await hw.createBasin(BASIN, { createStreamOnAppend: true, createStreamOnRead: true })
  const errors: unknown[] = []
  const onError = (error: unknown) => void errors.push(error)
  const server = await serve(hw, { auth: 'none', onError })
  const proxy = await faultyConnections(server, seededFaults(new Prng(seed), PROBABILITY))
  const agent = new Agent({ keepAlive: true })
  const sessions = new Map<string, PublishedClient>()
  // No retries: a repeated append would be a second one.
  const retry = { maxAttempts: 1 }
  const endpoints = { account: `${proxy.url}/v1`, basin: `${proxy.url}/v1` }
  const s2 = new S2({ accessToken: 'any', endpoints, retry })
  const sharing = (stream: string, transport: 's2s' | 'fetch') => {
    const key = `${transport} ${stream}`
    const client =
      sessions.get(key) ?? new PublishedClient(s2.basin(BASIN).stream(stream, { forceTransport: transport }))
    sessions.set(key, client)
    return client
  }
  return {
    faults: proxy.counts,
    errors,
    connect(stream, client) {
      if (client % 2 === 0) return new HttpClient(proxy.url, BASIN, stream, agent)
      return sharing(stream, client % 3 === 0 ? 'fetch' : 's2s')
    },
    reader: (stream) => new EngineClient(hw.basin(BASIN).stream(stream), 'pages'),
    async close() {
      await Promise.all([...sessions.values()].map((client) => client.close()))
      agent.destroy()
      await proxy.close()
      await Promise.all([server.close({ graceMs: 1_000 }), hw.close()])
    },
  }
}

const OUTCOMES = ['appended', 'refused', 'not-made', 'unknown', 'read', 'tail', 'failed'] as const

const faults = new Set<ConnectionFault>()

campaign('HTTP whose connections are cut', OUTCOMES, async (seed) => {
  const target = await openHttp(seed)
  const history = await recordTarget(target, workloadOf(seed))
  for (const fault of target.faults.keys()) faults.add(fault)
  expect(target.errors).toEqual([])
  return history
})

afterAll(() => {
  if (HAS_ALL_OUTCOMES) expect(faults).toEqual(new Set([...REQUEST_FAULTS, ...ANSWER_FAULTS]))
})
