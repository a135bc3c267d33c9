import { ClientCore } from '../../../adapters/client/core.ts'
import { type ConnectOptions, settingsOf } from '../../../adapters/client/options.ts'
import { RemoteHeadwater } from '../../../adapters/client/remote.ts'
import { createHandler, type HandlerOptions } from '../../../adapters/http/index.ts'
import { serve } from '../../../adapters/node/index.ts'
import { type Engine, type OpenOptions, open } from '../../../src/index.ts'
import { OVER_SOCKETS } from '../access.ts'

/**
 * Opens an engine and a client of it, through a handler or a server. The
 * result has the methods of the client, and those that only an engine has. Closing it closes both.
 */
export async function openConnected(options: OpenOptions): Promise<Engine> {
  const { clock, random, autoCreate, limits = {} } = options
  const { appendWaitingBytes, sessionInFlightBytes } = limits
  const engine = await open(options)
  const handlerOptions: HandlerOptions = { auth: 'none' }
  const server = OVER_SOCKETS ? await serve(engine, handlerOptions) : undefined
  const byHandler = (auth: 'none' | 'token') => ({
    url: 'http://localhost',
    fetch: createHandler(engine, { auth }),
  })
  const clients: RemoteHeadwater[] = []
  const connect = (own: ConnectOptions): RemoteHeadwater => {
    const client = new RemoteHeadwater(new ClientCore(settingsOf({ clock, random, retries: 0, ...own })))
    clients.push(client)
    return client
  }
  const remote = connect({
    ...(server === undefined ? byHandler('none') : { url: server.url }),
    autoCreate,
    limits: {
      ...(appendWaitingBytes !== undefined && { appendWaitingBytes }),
      ...(sessionInFlightBytes !== undefined && { sessionInFlightBytes }),
    },
  })
  const closeAll = async () => {
    await Promise.all(clients.map((client) => client.close()))
    await server?.close({ graceMs: 0 })
    await engine.close()
  }
  let closed: Promise<void> | undefined
  const close = () => {
    closed ??= closeAll()
    return closed
  }
  const replaced: Partial<Engine> = {
    as: (token) => connect({ ...byHandler('token'), token, autoCreate: false }) as unknown as Engine,
    close: async (callOptions) => (callOptions === undefined ? close() : remote.close(callOptions)),
    [Symbol.asyncDispose]: close,
  }
  return new Proxy(remote as unknown as Engine, {
    get(target, property: keyof Engine) {
      if (replaced[property] !== undefined) return replaced[property]
      const owner = property in target ? target : engine
      const value: unknown = Reflect.get(owner, property, owner)
      return typeof value === 'function' ? value.bind(owner) : value
    },
  })
}
