import { connect } from '../../../../adapters/client/index.ts'
import { serve } from '../../../../adapters/node/index.ts'
import { memory } from '../../../../adapters/storage/memory/index.ts'
import { open } from '../../../../src/index.ts'
import { Prng } from '../../../../src/runtime/random.ts'
import { clientsOf } from '../clients.ts'
import type { SettledTarget } from '../record-history.ts'
import { cutConnections } from './connection-faults.ts'

/** The probability of a fault for each piece on a connection. */
const PROBABILITY = 0.01

/**
 * A server on a real port, and two clients whose connections are cut: one has sessions over HTTP/2, the other
 * only HTTP/1.1.
 */
export async function openCutHttp(seed: number): Promise<SettledTarget> {
  const hw = await open({ storage: memory() })
  const errors: unknown[] = []
  const server = await serve(hw, { auth: 'none', onError: (error) => errors.push(error) })
  const proxy = await cutConnections(server, new Prng(seed), PROBABILITY)
  // A pause between attempts would only take time.
  const common = { url: proxy.url, retries: 2, random: () => 0 }
  const remotes = [await connect(common), await connect({ ...common, http2: false })]
  const clients = clientsOf(remotes.length, (index) => remotes[index]!)
  return {
    connect: clients.connect,
    settle: proxy.settle,
    async close() {
      await clients.endSessions()
      for (const remote of remotes) await remote.close()
      await proxy.close()
      await Promise.all([server.close({ graceMs: 1_000 }), hw.close()])
      if (errors.length > 0) throw new AggregateError(errors, 'unexpected errors of the server')
    },
  }
}
