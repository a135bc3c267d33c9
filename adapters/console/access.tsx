import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { Connection } from './connection.ts'
import { Problem } from './ui/elements.tsx'
import { Choice, TextField, useSubmit } from './ui/fields.tsx'

/** Whether the server takes this console's requests: without a token, with one, or not. */
export type Access = 'unknown' | 'open' | 'token' | 'missing' | 'rejected'

/** The connection of the console, and how the server treats its access token. */
export function useAccess(connect: (token?: string) => Connection, credentials: Credentials) {
  const [access, setAccess] = useState<Access>('unknown')
  const [{ token, session }, setToken] = useState(() => ({ token: credentials.load(), session: 0 }))
  const [loss, setLoss] = useState<Error>()
  const connection = useMemo(() => connect(token), [connect, session])
  useLayoutEffect(() => {
    setLoss(undefined)
    connection.onLoss = setLoss
    const accepted = connection.isAuthorized ? 'token' : 'open'
    connection.onUnauthorized = () =>
      setAccess(connection.isAuthorized || credentials.isCodeRejected ? 'rejected' : 'missing')
    connection.hw.listBasins({ limit: 1 }).then(
      () => setAccess(accepted),
      // A token that may not list basins is rejected with this, which is not about the token itself.
      (error) => error.code === 'permission_denied' && setAccess(accepted),
    )
    return () => {
      connection.onUnauthorized = () => {}
      connection.onLoss = () => {}
      connection.close()
    }
  }, [connection])
  const use = (next?: string) => {
    setAccess('unknown')
    setToken({ token: next, session: session + 1 })
  }
  return {
    access,
    session,
    connection,
    /** Why the server cannot be reached, if it cannot. */
    loss,
    useToken(next: string, place: TokenPlace) {
      credentials.save(next, place)
      use(next)
    },
    forgetToken() {
      credentials.clear()
      use()
    },
  }
}

/** The place that keeps the access token: memory only, this tab, or this browser. */
type TokenPlace = 'memory' | StorageName
type StorageName = 'sessionStorage' | 'localStorage'

const TOKEN_KEY = 'headwater-console-token'

/** The access token that the user has asked to keep for a server. */
export class Credentials {
  /** Whether the server rejected the code of a link that signs in. */
  isCodeRejected = false
  readonly #key: string

  constructor(url: string) {
    this.#key = `${TOKEN_KEY}:${url}`
  }

  /** The token of this tab, else that of this browser. */
  load(): string | undefined {
    return readStored('sessionStorage', this.#key) ?? readStored('localStorage', this.#key)
  }

  /** Keeps the token in one place and removes it from the others. */
  save(token: string, place: TokenPlace): void {
    this.clear()
    if (place !== 'memory') writeStored(place, this.#key, token)
  }

  /** Removes the token from every place. */
  clear(): void {
    this.isCodeRejected = false
    writeStored('sessionStorage', this.#key, undefined)
    writeStored('localStorage', this.#key, undefined)
  }
}

/** Reads a value. Storage that is not available, as in a sandboxed frame, counts as empty. */
export function readStored(storage: StorageName, key: string): string | undefined {
  try {
    return globalThis[storage].getItem(key) ?? undefined
  } catch {
    return undefined
  }
}

/** Stores a value, or removes it if it is undefined. Does nothing where storage is not available. */
export function writeStored(storage: StorageName, key: string, value: string | undefined): void {
  try {
    if (value === undefined) globalThis[storage].removeItem(key)
    else globalThis[storage].setItem(key, value)
  } catch {
    // The value stays in memory.
  }
}

const PLACES: readonly (readonly [place: TokenPlace, label: string])[] = [
  ['memory', 'until this page is closed or reloaded'],
  ['sessionStorage', 'until this tab is closed'],
  ['localStorage', 'in this browser, until you choose “Forget token”'],
]

const REJECTED = new Error('The server rejected the access token or link: unknown, used, expired or revoked.')

const PLACE_KEY = 'headwater-console-remember'

/** Asks for an access token. */
export function TokenForm(props: {
  readonly isRejected: boolean
  readonly onToken: (token: string, place: TokenPlace) => void
}) {
  const { isRejected, onToken } = props
  const remembered = readStored('localStorage', PLACE_KEY) ?? 'memory'
  const form = useRef<HTMLFormElement>(null)
  useLayoutEffect(() => form.current!.token.focus(), [])
  const { onSubmit } = useSubmit(async ({ token = '', place = 'memory' }) => {
    writeStored('localStorage', PLACE_KEY, place)
    onToken(token.trim(), place as TokenPlace)
  })
  return (
    <form ref={form} class="panel narrow" onSubmit={onSubmit}>
      <h1 tabIndex={-1}>Access token</h1>
      <p>
        This server requires an access token. <code>headwater serve</code> prints its root token at the first
        start, and a link that signs in once.
      </p>
      <Problem error={isRejected ? REJECTED : undefined} />
      <TextField
        label="Access token"
        type="password"
        name="token"
        required
        // As servers accept it: anything else cannot be a header.
        pattern="\s*[!-~]+\s*"
        title="Visible ASCII characters"
      />
      <fieldset>
        <legend>Remember it</legend>
        {PLACES.map(([place, label]) => (
          <Choice
            key={place}
            label={label}
            type="radio"
            name="place"
            value={place}
            defaultChecked={place === remembered}
          />
        ))}
      </fieldset>
      <footer>
        <button type="submit" class="primary">
          Connect
        </button>
      </footer>
    </form>
  )
}
