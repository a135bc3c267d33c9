import { Agent } from 'node:http'
import { afterAll, expect, it } from 'vitest'
import { serve } from '../../../adapters/node/index.ts'
import { memory } from '../../../adapters/storage/memory/index.ts'
import { open } from '../../../src/index.ts'
import { HttpClient } from './clients/http-client.ts'
import { type ConnectionFault, type FaultSource, faultyConnections } from './connection-faults.ts'

const BASIN = 'faults'
const hw = await open({ storage: memory() })
await hw.createBasin(BASIN, { createStreamOnAppend: true, createStreamOnRead: true })
const errors: unknown[] = []
const onError = (error: unknown) => void errors.push(error)
const server = await serve(hw, { auth: 'none', onError })
const agent = new Agent({ keepAlive: true })

afterAll(async () => {
  agent.destroy()
  await Promise.all([server.close(), hw.close()])
  expect(errors).toEqual([])
})

/** A proxy that applies one fault to the first piece. */
async function openFaulty(fault: ConnectionFault | undefined) {
  let left: ConnectionFault | undefined = fault
  const read = (side: string) => {
    if (!left?.startsWith(side)) return undefined
    const message = left
    left = undefined
    return message
  }
  const faults = {
    request: () => read('request'),
    answer: () => read('answer'),
    part: (bytes) => Math.floor(bytes / 2),
    lateChunks: () => 10,
  } as FaultSource
  const connections = await faultyConnections(server, faults)
  const stream = fault ?? 'none'
  const client = new HttpClient(connections.url, BASIN, stream, agent)
  const tail = async () => (await hw.basin(BASIN).stream(stream).checkTail()).seqNum
  return { connections, client, tail }
}

it('requests and responses pass unchanged without a fault', async () => {
  const { connections, client } = await openFaulty(undefined)
  expect(await client.append({ bodies: ['a', 'b'] })).toEqual({ kind: 'appended', start: 0, end: 2, tail: 2 })
  expect(await client.append({ bodies: ['c'], matchSeqNum: 0 })).toEqual({ kind: 'refused', seqNum: 2 })
  expect(await client.append({ bodies: ['c'], fencingToken: 'x' })).toEqual({
    kind: 'refused',
    fencingToken: '',
  })
  expect(await client.append({ bodies: [], setFencingToken: 'x'.repeat(37) })).toEqual({ kind: 'not-made' })
  expect(await client.checkTail()).toEqual({ kind: 'tail', tail: 2 })
  expect(await client.read()).toMatchObject({ kind: 'read', tail: 2 })
  expect(connections.counts.size).toBe(0)
  await connections.close()
})

it.each<[ConnectionFault, number]>([
  ['request lost', 0],
  ['request torn', 0],
  ['answer lost', 1],
  ['answer torn', 1],
])('%s: the client does not know that %d records were appended', async (fault, appended) => {
  const { connections, client, tail } = await openFaulty(fault)
  expect(await client.append({ bodies: ['a'] })).toEqual({ kind: 'unknown' })
  expect(await tail()).toBe(appended)
  expect(connections.counts).toEqual(new Map([[fault, 1]]))
  expect(await client.append({ bodies: ['b'] })).toMatchObject({ kind: 'appended', start: appended })
  await connections.close()
})

it('a late request takes effect after the client has lost its connection', async () => {
  const { connections, client, tail } = await openFaulty('request late')
  expect(await client.append({ bodies: ['a'] })).toEqual({ kind: 'unknown' })
  expect(await tail()).toBe(0)
  const tailAfterMoreChunks = async () => {
    await client.checkTail()
    return tail()
  }
  expect(await tailAfterMoreChunks()).toBe(0)
  await expect.poll(tailAfterMoreChunks).toBe(1)
  await connections.close()
})

it('late requests arrive when all connections end', async () => {
  const { connections, client, tail } = await openFaulty('request late')
  const before = await tail()
  expect(await client.append({ bodies: ['a'] })).toEqual({ kind: 'unknown' })
  await connections.close()
  await expect.poll(tail).toBe(before + 1)
})
