import { useEffect, useMemo, useState } from 'preact/hooks'
import type { Client } from './api/client.ts'

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

/** Where the access token is kept: nowhere but in memory, for this tab, or in this browser. */
export type TokenPlace = 'memory' | 'tab' | 'browser'

const KEY = 'headwater-console-token'

/** The access token that the user has asked to keep for a server. */
export class Credentials {
  readonly #key: string

  constructor(url: string) {
    this.#key = `${KEY}:${url}`
  }

  /** The token of this tab, else that of this browser. */
  load(): string | undefined {
    return readStored(() => sessionStorage, this.#key) ?? readStored(() => localStorage, this.#key)
  }

  /** Keeps the token in one place and removes it from the others. */
  save(token: string, place: TokenPlace): void {
    this.clear()
    if (place !== 'memory')
      writeStored(() => (place === 'tab' ? sessionStorage : localStorage), this.#key, token)
  }

  /** Removes the token from every place. */
  clear(): void {
    for (const storage of [() => sessionStorage, () => localStorage])
      writeStored(storage, this.#key, undefined)
  }
}

/** Reads a value. Storage that is not available, as in a sandboxed frame, counts as empty. */
export function readStored(storage: () => Storage, key: string): string | undefined {
  try {
    return storage().getItem(key) ?? undefined
  } catch {
    return undefined
  }
}

/** Stores a value, or removes it if it is undefined. Does nothing where storage is not available. */
export function writeStored(storage: () => Storage, key: string, value: string | undefined): void {
  try {
    if (value === undefined) storage().removeItem(key)
    else storage().setItem(key, value)
  } catch {
    // The value stays in memory.
  }
}
