// @module-tag slow

import { AppendInput, AppendRecord, S2 } from '@s2-dev/streamstore'
import { expect, it, onTestFinished, vi } from 'vitest'
import { connect } from '../../adapters/client/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { mirror } from '../../adapters/sync/mirror.ts'
import { open } from '../../src/index.ts'
import { killableServer } from '../cli/killable-server.ts'
import { program } from '../cli/program.ts'
import { contentOf } from './mirrored.ts'

const headwater = program()

it('a mirror equals the stream of a server that is killed while the published client appends', async () => {
  const server = await killableServer(headwater)
  const published = new S2({ accessToken: 'any', endpoints: { account: server.url, basin: server.url } })
  await published.basins.create({ basin: 'my-first-app' })
  await published.basin('my-first-app').streams.create({ stream: 's' })
  const writer = published.basin('my-first-app').stream('s')
  const client = await connect({ url: server.url })
  const hw = await open({ storage: memory() })
  const remote = client.basin('my-first-app').stream('s')
  const local = hw.basin('my-first-app').stream('s')
  const copy = mirror(remote, local)
  onTestFinished(async () => {
    await copy.close()
    await client.close()
    await hw.close()
    await writer.close()
  })
  const append = (body: string) => writer.append(AppendInput.create([AppendRecord.string({ body })]))
  for (let round = 0; round < 3; round++) {
    for (let i = 0; i < 20; i++) await append(`${round}.${i}`)
    // These may or may not be stored.
    const late = Array.from({ length: 5 }, (_, i) => append(`${round}.late ${i}`).catch(() => {}))
    await server.kill()
    await server.start()
    copy.retry()
    await Promise.all(late)
  }
  await append('last')
  await vi.waitFor(async () =>
    expect((await local.checkTail()).seqNum).toBe((await remote.checkTail()).seqNum),
  )
  await vi.waitFor(() => expect(copy.state.kind).toBe('live'))
  const { records } = await contentOf(local)
  expect(records).toEqual((await contentOf(remote)).records)
  const bodies = records.map(({ body }) => new TextDecoder().decode(body))
  // The published client may repeat an append.
  expect(new Set(bodies.filter((body) => !body.includes('late'))).size).toBe(61)
  const session = await writer.readSession({
    start: { from: { seqNum: 0 } },
    stop: { limits: { count: records.length } },
  })
  const seen: string[] = []
  for await (const { body } of session) seen.push(body)
  expect(seen).toEqual(bodies)
}, 60_000)
