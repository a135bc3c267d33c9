import type { Engine } from '../../../src/index.ts'
import type { Evidence } from './evidence.ts'
import { FAILURES } from './failing-calls.ts'
import { BASIN, EVERYTHING, KEYS, SEALED_TEXTS } from './material.ts'
import { STORAGE_METHODS, type WatchedStorage } from './watched-storage.ts'

/**
 * The rejections for the owner of the process and for the holder of a token, while the storage works and
 * while it fails.
 */
export async function failInProcess(
  hw: Engine,
  token: string,
  watched: WatchedStorage,
  evidence: Evidence,
): Promise<void> {
  const failed = (source: string) => (error: unknown) => evidence.add('errors', source, error)
  const callers = { owner: hw, holder: hw.as(token), stranger: hw.as(`${token.slice(0, -8)}AAAAAAA=`) }
  const calls = (caller: Engine): readonly Promise<unknown>[] =>
    Object.values(KEYS).flatMap((encryptionKey) => {
      const stream = caller.basin(BASIN, { autoCreate: false }).stream('letters', { encryptionKey })
      return [
        stream.append(SEALED_TEXTS['a sealed body'], { matchSeqNum: 99 }),
        stream.append({ headers: [['', SEALED_TEXTS['a sealed body']]] }),
        stream.append({ headers: [[SEALED_TEXTS['the name of a sealed header'], 'v']], timestamp: -1 }),
        stream.readBatch({ seqNum: 0 }),
        stream.readBatch({ seqNum: 99 }),
        caller.issueAccessToken({ id: 'fine', scope: EVERYTHING }),
        caller.issueAccessToken({ id: 'x', expiresAt: new Date(0), scope: {} }),
        caller.listAccessTokens({ prefix: 'x', limit: -1 }),
        caller.basin(BASIN, { autoCreate: false }).listStreams(),
      ]
    })
  const settle = async (source: string, caller: Engine) => {
    await Promise.all(calls(caller).map((call) => call.catch(failed(source))))
  }
  let failures = 0
  for (const [who, caller] of Object.entries(callers)) {
    await settle(who, caller)
    for (const method of STORAGE_METHODS) {
      const error = FAILURES[failures++ % FAILURES.length]!
      await watched.failing(method, error, () => settle(`${who} while ${method} fails`, caller))
    }
  }
}

/** Objects that an app may log, with their content. */
export async function inspectHandles(hw: Engine, token: string, evidence: Evidence): Promise<void> {
  const holder = hw.as(token)
  for (const [who, caller] of Object.entries({ owner: hw, holder })) {
    const basin = caller.basin(BASIN)
    const stream = basin.stream('letters', { encryptionKey: KEYS['the right key'] })
    const bytes = Buffer.from(KEYS['the right key'], 'base64')
    const producer = stream.producer()
    const session = await stream.appendSession()
    const ticket = await session.submit(SEALED_TEXTS['a sealed body'])
    const read = stream.follow({ seqNum: 0 })
    const handles = {
      engine: caller,
      basin,
      stream,
      'stream with bytes': basin.stream('letters', { encryptionKey: bytes }),
      producer,
      session,
      ticket,
      ack: await ticket.ack(),
      read,
      tokens: await caller.listAccessTokens(),
    }
    for (const [name, handle] of Object.entries(handles)) {
      evidence.add('handles', `${name} of the ${who}`, handle)
      evidence.add('handles', `${name} of the ${who} as a member`, { handle })
    }
    await session.close()
    await producer.close()
  }
}
