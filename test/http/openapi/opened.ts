import { expect } from 'vitest'
import { memory } from '../../../adapters/storage/memory/index.ts'
import { type Engine, type OpenOptions, open } from '../../../src/index.ts'
import { usageMetrics } from '../../../src/usage/index.ts'
import { testClock } from '../../support/index.ts'
import { BASIN, type Call, DURABLE, type Init } from './provoke.ts'

export const RECORDS = '/v1/streams/s/records'

/** Opens an engine with the basin and the stream that samples name, in both protocols. */
export async function opened(options: Partial<OpenOptions> = {}): Promise<Engine> {
  const hw = await open({ storage: memory(), usage: usageMetrics(), clock: testClock(), ...options })
  const request = hw.onConnection({})
  for (const basin of [BASIN, DURABLE]) {
    await request.createBasin(basin)
    await hw.basin(basin).createStream('s')
  }
  await hw.basin(BASIN).stream('s').append('hello')
  await hw.issueAccessToken({ id: 'a-token', scope: { ops: ['read'] } })
  return hw
}

/** Requests by method and path, each with the status that it must have. */
export type Row = readonly [status: number, method: string, path: string, init?: Init]

export async function expectStatuses(call: Call, rows: readonly Row[]): Promise<void> {
  for (const [status, method, path, init] of rows) {
    const response = await call(method, path, init)
    expect([method, path, response.status, response.status === status ? '' : await response.text()]).toEqual([
      method,
      path,
      status,
      '',
    ])
  }
}
