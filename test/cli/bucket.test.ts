// @module-tag slow

import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { connect } from '../../adapters/client/index.ts'
import { filesystem } from '../../adapters/storage/filesystem/index.ts'
import { open } from '../../src/index.ts'
import { CREDENTIALS, Gateway, HAS_VERSITYGW, withoutVersitygw } from '../storage/s3/versitygw.ts'
import { ended, program } from './program.ts'

const headwater = program()

/** `.ci/run` installs the gateway. */
describe.runIf(HAS_VERSITYGW)(`the command line with a bucket${withoutVersitygw}`, () => {
  let gateway: Gateway
  beforeAll(async () => {
    gateway = await Gateway.start()
  })
  afterAll(() => gateway?.remove())

  const start = (...args: string[]) => {
    const { accessKeyId, secretAccessKey } = CREDENTIALS
    return headwater.start(
      args,
      {
        AWS_ACCESS_KEY_ID: accessKeyId,
        AWS_SECRET_ACCESS_KEY: secretAccessKey,
        AWS_ENDPOINT_URL_S3: gateway.endpoint,
      },
      headwater.directory,
    )
  }
  const finished = async (...args: string[]) => {
    const { code, err } = await ended(start(...args))
    expect(code, err).toBe(0)
  }

  /** Starts a server. Resolves to its URL, and to what ends it. */
  async function serve(location: string) {
    const child = start('serve', '--storage', location, '--port', '0', '--no-auth')
    const stop = async () => {
      child.kill('SIGTERM')
      if (child.exitCode === null) await once(child, 'exit')
      return child.exitCode
    }
    onTestFinished(async () => void (await stop()))
    for await (const chunk of child.stdout!) {
      const url = /http:\S+/.exec(String(chunk))?.[0]
      if (url === undefined) continue
      child.stdout!.resume()
      return { url, stop }
    }
    throw new Error('the server does not start')
  }

  const textsAt = async (url: string) => {
    const hw = await connect({ url })
    onTestFinished(() => hw.close())
    return (await hw.basin('my-app').stream('notes').read().toArray()).map(({ body }) => body)
  }

  it('serves what was copied from a directory, and keeps what clients append', async () => {
    const directory = `${headwater.directory}/data`
    const local = await open({ storage: filesystem(directory) })
    const texts = Array.from({ length: 2_000 }, (_, i) => `record ${i}`)
    await local.basin('my-app').stream('notes').append(texts.slice(0, 1_000))
    await local.basin('my-app').stream('notes').append(texts.slice(1_000))
    await local.close()
    const bucket = `s3://${await gateway.newBucket()}/apps/chat`
    await finished('copy', './data', bucket)
    const first = await serve(bucket)
    expect(await textsAt(first.url)).toEqual(texts)
    const hw = await connect({ url: first.url })
    const { start } = await hw.basin('my-app').stream('notes').append('appended')
    expect(start.seqNum).toBe(2_000)
    await hw.close()
    expect((await fetch(new URL('/health', first.url))).status).toBe(200)
    expect(await first.stop()).toBe(0)
    const second = await serve(bucket)
    expect(await textsAt(second.url)).toEqual([...texts, 'appended'])
  })

  it('exports a bucket, and imports it into another one', async () => {
    const [from, to] = [await gateway.newBucket(), await gateway.newBucket()]
    const hw = await open({ storage: gateway.storage(from) })
    await hw.basin('my-app').stream('notes').append(['first', 'second'])
    await hw.close()
    await finished('export', '--storage', `s3://${from}`, '--out', 'backup.jsonl')
    await finished('import', '--storage', `s3://${to}/restored`, 'backup.jsonl')
    const { url } = await serve(`s3://${to}/restored`)
    expect(await textsAt(url)).toEqual(['first', 'second'])
  })

  it.each(['flushMs=soon', 'takeOver', 'flush=1'])('refuses the query %s', async (query) => {
    const { code, err } = await ended(start('ls', '--storage', `s3://data/app?${query}`))
    expect(code).toBe(2)
    expect(err).toContain(`invalid \`${query.split('=')[0]}\` in the URL of the bucket`)
  })

  it('names the process that has the bucket open, and takes the bucket over if asked', async () => {
    const bucket = await gateway.newBucket()
    const hw = await open({ storage: gateway.storage(bucket) })
    onTestFinished(() => hw.close())
    const { code, err } = await ended(
      start('serve', '--storage', `s3://${bucket}`, '--port', '0', '--no-auth'),
    )
    expect(code).toBe(1)
    expect(err).toContain(`process ${process.pid} on`)
    const { url } = await serve(`s3://${bucket}?takeOver=true&flushMs=20`)
    expect((await fetch(new URL('/health', url))).status).toBe(200)
  })
})
