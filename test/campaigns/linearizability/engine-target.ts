import { type Engine, open, type Stream } from '../../../src/index.ts'
import type { AppendAck } from '../../../src/model/info.ts'
import type { Storage } from '../../../src/storage/contract.ts'
import { conditionsOf, EngineClient, failedAppend, inputsOf } from './clients/engine-client.ts'
import { type Ack, PipelinedAppends } from './clients/pipelined-appends.ts'
import type { OpenTarget } from './stream-client.ts'

const BASIN = 'linearizability'

/**
 * Engines on one storage with clients in their process. Some clients make independent appends, others share a
 * session per stream; some read in pages, others by sessions.
 */
export async function openEngines(storage: Storage, count: number): Promise<OpenTarget> {
  const engines: Engine[] = []
  for (let i = 0; i < count; i++) engines.push(await open({ storage }))
  const sessions = new Map<string, PipelinedAppends>()
  const sessionOf = (stream: Stream, engine: number) => {
    const key = `${engine} ${stream.name}`
    const session = sessions.get(key) ?? engineSession(stream)
    sessions.set(key, session)
    return session
  }
  const streamOf = (engine: number, name: string) => engines[engine]!.basin(BASIN).stream(name)
  return {
    connect(name, client) {
      const engine = client % count
      const clientKind = Math.floor(client / count)
      const stream = streamOf(engine, name)
      const plain = new EngineClient(stream, clientKind % 2 === 0 ? 'pages' : 'session')
      if (clientKind % 3 === 0) return plain
      const session = sessionOf(stream, engine)
      return {
        append: (call) => session.append(call),
        read: () => plain.read(),
        checkTail: () => plain.checkTail(),
      }
    },
    reader: (name) => new EngineClient(streamOf(0, name), 'pages'),
    async close() {
      await Promise.all([...sessions.values()].map((session) => session.close()))
      for (const engine of engines) await engine.close()
    },
  }
}

/** The appends of clients in the process of the engine that share a session. */
function engineSession(stream: Stream): PipelinedAppends {
  const open = async () => {
    const session = await stream.appendSession()
    return {
      submit: async (call: Parameters<typeof inputsOf>[0]) => {
        const ticket = await session.submit(inputsOf(call), conditionsOf(call))
        return { ack: async () => numbersOf(await ticket.ack()) }
      },
      close: () => session.close(),
    }
  }
  return new PipelinedAppends(open, failedAppend)
}

function numbersOf({ start, end, tail }: AppendAck): Ack {
  return { start: start.seqNum, end: end.seqNum, tail: tail.seqNum }
}
