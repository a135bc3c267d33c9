import { connect, createServer, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'
import { listening } from './listening.ts'

interface Pair {
  readonly client: Socket
  readonly server: Socket
  isSilent: boolean
}

/** A relay to the port that a function returns, whose connections a test breaks in several ways. */
export async function startRelay(portOf: () => number) {
  const pairs = new Set<Pair>()
  let accepted = 0
  let keepsReplies = false
  const relay = createServer((client) => {
    const pair = { client, server: connect(portOf(), '127.0.0.1'), isSilent: false }
    const { server } = pair
    pairs.add(pair)
    accepted++
    client.on('data', (chunk) => {
      if (!pair.isSilent) server.write(chunk)
    })
    server.on('data', (chunk) => {
      if (!pair.isSilent && !keepsReplies) client.write(chunk)
    })
    for (const socket of [client, server]) {
      socket.on('error', () => {})
      socket.on('close', () => {
        pairs.delete(pair)
        client.destroy()
        server.destroy()
      })
    }
  })
  const cut = () => {
    for (const { client, server } of pairs) {
      client.destroy()
      server.destroy()
    }
  }
  onTestFinished(cut)
  return {
    url: await listening(relay),
    /** How many connections were accepted so far. */
    connections: () => accepted,
    cut,
    /** Whether everything is lost that the server sends from now on. */
    keepReplies: (value: boolean) => {
      keepsReplies = value
    },
    /** From now on, the connections that exist lose everything, in both directions. */
    silence: () => {
      for (const pair of pairs) pair.isSilent = true
    },
  }
}
