import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { AwsClient } from 'aws4fetch'
import { CREDENTIALS, Gateway } from '../../test/storage/s3/versitygw.ts'
import { loadNode, openBucket } from '../harness/headwater.ts'
import { host, type Prepared, usageOf } from '../harness/host.ts'
import { textOf } from '../harness/records.ts'

/** A server that keeps its streams in a bucket. */
interface Server {
  readonly port: number
  /** If it runs in a process of its own. */
  readonly usage?: Prepared['usage']
  close(): Promise<unknown>
}

const POSITION = { seq_num: 1_000_000, timestamp: 1_700_000_000_000 }
const ACK = JSON.stringify({ start: POSITION, end: POSITION, tail: POSITION })
const RECORDS = '/v1/streams/streams%2F0/records'
const BATCH_RECORDS = 500
const READ_RECORDS = 1_000
const RANGE_BYTES = 1_048_576

host({
  headwater: () => serving(headwaterServer, 'svc-basin'),
  'open server': () => serving(openServer, 's2-basin'),
  bare: () => serving(bareServer, 'svc-basin'),
  'headwater catch-up': ({ size }: { size: number }) => catchingUp(headwaterServer, 'svc-basin', size),
  'open server catch-up': ({ size }: { size: number }) => catchingUp(openServer, 's2-basin', size),
  'bare catch-up': ({ size }: { size: number }) => readingRanges(size),
})

type Start = (gateway: Gateway, bucket: string) => Promise<Server>

async function serving(start: Start, basinHeader: string): Promise<Prepared> {
  const gateway = await Gateway.start()
  const server = await start(gateway, await gateway.newBucket())
  const { port, usage } = server
  if (start !== bareServer) await createStream(port, basinHeader)
  return {
    info: { port },
    ...(usage !== undefined && { usage }),
    async close() {
      await server.close()
      await gateway.remove()
    },
  }
}

/** Reads all records of a server that has just been started again. */
async function catchingUp(start: Start, basinHeader: string, size: number): Promise<Prepared> {
  const gateway = await Gateway.start()
  const bucket = await gateway.newBucket()
  const first = await start(gateway, bucket)
  await createStream(first.port, basinHeader)
  const headers = { [basinHeader]: 'my-basin', 'content-type': 'application/json' }
  const body = JSON.stringify({ records: Array.from({ length: BATCH_RECORDS }, () => ({ body: textOf() })) })
  for (let written = 0; written < size; written += BATCH_RECORDS) {
    await request(first.port, RECORDS, { method: 'POST', headers, body })
  }
  await first.close()
  const server = await start(gateway, bucket)
  return {
    ...(server.usage !== undefined && { usage: server.usage }),
    async turn() {
      for (let next = 0; next < size; ) {
        const reply = await request(server.port, `${RECORDS}?seq_num=${next}&count=${READ_RECORDS}`, {
          headers,
        })
        const { records } = (await reply.json()) as { records: readonly unknown[] }
        next += records.length
      }
    },
    async close() {
      await server.close()
      await gateway.remove()
    },
  }
}

async function createStream(port: number, basinHeader: string): Promise<void> {
  const headers = { 'content-type': 'application/json' }
  await request(port, '/v1/basins', { method: 'POST', headers, body: '{"basin":"my-basin"}' })
  await request(port, '/v1/streams', {
    method: 'POST',
    headers: { ...headers, [basinHeader]: 'my-basin' },
    body: '{"stream":"streams/0"}',
  })
}

async function request(port: number, path: string, init: RequestInit): Promise<Response> {
  const reply = await fetch(`http://127.0.0.1:${port}${path}`, init)
  if (!reply.ok) throw new Error(`${path}: ${reply.status} ${await reply.text()}`)
  return reply
}

async function headwaterServer({ endpoint }: Gateway, bucket: string): Promise<Server> {
  const { serve } = await loadNode()
  const headwater = await openBucket({ bucket, endpoint, credentials: CREDENTIALS })
  const server = await serve(headwater, { auth: 'none', port: 0 })
  return { port: server.port, close: () => Promise.all([server.close(), headwater.close()]) }
}

async function openServer({ endpoint }: Gateway, bucket: string): Promise<Server> {
  const port = await freePort()
  const server = spawn(process.env.OPEN_SERVER!, ['--bucket', bucket, '--port', String(port)], {
    stdio: 'ignore',
    env: {
      ...process.env,
      AWS_ENDPOINT_URL_S3: endpoint,
      AWS_ACCESS_KEY_ID: CREDENTIALS.accessKeyId,
      AWS_SECRET_ACCESS_KEY: CREDENTIALS.secretAccessKey,
      AWS_REGION: 'us-east-1',
    },
  })
  process.on('exit', () => server.kill())
  await untilHealthy(server, port)
  return {
    port,
    usage: () => usageOf(server.pid!),
    async close() {
      server.kill('SIGTERM')
      await once(server, 'exit')
    },
  }
}

async function untilHealthy(server: ChildProcess, port: number): Promise<void> {
  while (server.exitCode === null) {
    const reply = await fetch(`http://127.0.0.1:${port}/health`).catch(() => undefined)
    if (reply?.ok) return
    await setTimeout(50)
  }
  throw new Error('the open server does not start')
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

/** While a request stores a group, the next one gathers. */
async function bareServer({ endpoint }: Gateway, bucket: string): Promise<Server> {
  const client = clientOf()
  let waiting: { readonly body: string; readonly response: ServerResponse }[] = []
  let isWriting = false
  let index = 0
  const write = async () => {
    if (isWriting) return
    isWriting = true
    while (waiting.length > 0) {
      const group = waiting
      waiting = []
      await put(client, `${endpoint}/${bucket}/${index++}`, group.map(({ body }) => body).join(''))
      for (const { response } of group) {
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': ACK.length })
        response.end(ACK)
      }
    }
    isWriting = false
  }
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const chunk of request.setEncoding('utf8')) text += chunk
    const { records } = JSON.parse(text) as { records: readonly { body: string }[] }
    for (const { body } of records) waiting.push({ body, response })
    void write()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      server.closeAllConnections()
      server.close()
    },
  }
}

/** Reads as many bytes as the records have. */
async function readingRanges(size: number): Promise<Prepared> {
  const gateway = await Gateway.start()
  const url = `${gateway.endpoint}/${await gateway.newBucket()}/object`
  const client = clientOf()
  const bytes = size * textOf().length
  await put(client, url, textOf().repeat(size))
  return {
    async turn() {
      for (let at = 0; at < bytes; at += RANGE_BYTES) {
        const headers = { range: `bytes=${at}-${at + RANGE_BYTES - 1}` }
        await (await fetch(await client.sign(url, { headers }))).arrayBuffer()
      }
    },
    close: () => gateway.remove(),
  }
}

async function put(client: AwsClient, url: string, body: string): Promise<void> {
  const signed = await client.sign(url, { method: 'PUT', body, headers: { 'if-none-match': '*' } })
  const reply = await fetch(signed)
  if (!reply.ok) throw new Error(`${reply.status} ${await reply.text()}`)
  await reply.arrayBuffer()
}

function clientOf(): AwsClient {
  return new AwsClient({ ...CREDENTIALS, service: 's3', region: 'us-east-1', retries: 0 })
}
