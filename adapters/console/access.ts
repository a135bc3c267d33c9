import { useEffect, useMemo, useState } from 'preact/hooks'
import type { Client } from './api/client.ts'
import type { Credentials, TokenPlace } from './api/credentials.ts'

/** Whether the server takes this console's requests: without a token, with one, or not. */
export type Access = 'unknown' | 'open' | 'token' | 'missing' | 'rejected'

/** The access token of the console, and what the server makes of it. */
export function useAccess(client: Client, credentials: Credentials) {
  const [access, setAccess] = useState<Access>('unknown')
  const [session, setSession] = useState(0)
  useMemo(() => {
    client.token = credentials.load()
  }, [client, credentials])
  useEffect(() => {
    const abort = new AbortController()
    const isAnswered = () => {
      if (!abort.signal.aborted) setAccess(client.token === undefined ? 'open' : 'token')
    }
    client.onUnauthorized = () => setAccess(client.token === undefined ? 'missing' : 'rejected')
    const call = { method: 'GET', path: ['basins'], query: { limit: 1 } } as const
    // A token that may not list basins is answered with 403, which is not about the token itself.
    client.json(call, abort.signal).then(isAnswered, (error) => error.status === 403 && isAnswered())
    return () => abort.abort()
  }, [client, session])
  return {
    access,
    session,
    useToken(token: string, place: TokenPlace) {
      client.token = token
      credentials.save(token, place)
      setAccess('unknown')
      setSession((value) => value + 1)
    },
    forgetToken() {
      client.token = undefined
      credentials.clear()
      setAccess('unknown')
      setSession((value) => value + 1)
    },
  }
}
