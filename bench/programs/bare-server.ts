import { open } from 'node:fs/promises'
import { createServer, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { host, type Prepared } from '../harness/host.ts'
import { textOf } from '../harness/records.ts'

const POSITION = { seq_num: 1_000_000, timestamp: 1_700_000_000_000 }
const ACK = JSON.stringify({ start: POSITION, end: POSITION, tail: POSITION })

/** Each server sends the bytes that headwater sends for the same request, and does nothing else. */
host({
  append() {
    return listen((request, response) =>
      readBody(request, (text) => {
        const { records } = JSON.parse(text) as { records: readonly unknown[] }
        if (records.length === 0) throw new Error('no records')
        sendJson(response, ACK)
      }),
    )
  },

  /** The same, once the record is synced to a file: while a sync lasts, the next group gathers. */
  async 'append synced'({ directory }: { directory: string }) {
    const file = await open(join(directory, 'log'), 'w')
    let waiting: { readonly body: string; readonly response: ServerResponse }[] = []
    let isWriting = false
    const write = async () => {
      if (isWriting) return
      isWriting = true
      while (waiting.length > 0) {
        const group = waiting
        waiting = []
        await file.write(Buffer.from(group.map(({ body }) => body).join('')))
        await file.datasync()
        for (const { response } of group) sendJson(response, ACK)
      }
      isWriting = false
    }
    const server = await listen((request, response) =>
      readBody(request, (text) => {
        const { records } = JSON.parse(text) as { records: readonly { body: string }[] }
        for (const { body } of records) waiting.push({ body, response })
        void write()
      }),
    )
    return {
      ...server,
      async close() {
        server.close?.()
        await file.close()
      },
    }
  },

  read() {
    const records = Array.from({ length: 100 }, (_, index) => ({
      seq_num: index,
      timestamp: 1_700_000_000_000 + index,
      body: textOf(),
    }))
    return listen((_, response) => sendJson(response, JSON.stringify({ records })))
  },

  /** Forwards the body of each request to all followers. */
  relay() {
    const followers = new Set<ServerResponse>()
    return listen((request, response) => {
      if (request.method === 'GET') {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.flushHeaders()
        followers.add(response)
        response.on('close', () => followers.delete(response))
        return
      }
      readBody(request, (text) => {
        for (const follower of followers) follower.write(`data: ${text}\n\n`)
        response.writeHead(204).end()
      })
    })
  },

  events() {
    const followers = new Set<ServerResponse>()
    let seqNum = 0
    return listen((request, response) => {
      if (request.method === 'GET') {
        response.writeHead(200, {
          'content-type': 'text/event-stream',
          'cache-control': 'no-cache, no-transform',
        })
        response.write('event: ping\ndata: {"timestamp":1700000000000}\n\n')
        followers.add(response)
        response.on('close', () => followers.delete(response))
        return
      }
      readBody(request, (text) => {
        const [record] = (JSON.parse(text) as { records: readonly { body: string }[] }).records
        const timestamp = Date.now()
        const batch = JSON.stringify({
          records: [{ seq_num: seqNum, timestamp, body: record!.body }],
          tail: { seq_num: seqNum + 1, timestamp },
        })
        const event = `event: batch\nid: ${seqNum},1,1024\ndata: ${batch}\n\n`
        seqNum++
        for (const follower of followers) follower.write(event)
        sendJson(response, '{}')
      })
    })
  },
})

async function listen(listener: RequestListener): Promise<Prepared> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    info: { port: (server.address() as AddressInfo).port },
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}

function readBody(request: Parameters<RequestListener>[0], use: (text: string) => void): void {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => use(Buffer.concat(chunks).toString()))
}

function sendJson(response: ServerResponse, text: string): void {
  const length = Buffer.byteLength(text)
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': length }).end(text)
}
