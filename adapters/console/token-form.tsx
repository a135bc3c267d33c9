import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { readStored, type TokenPlace, writeStored } from './access.ts'
import { Field } from './ui/field.tsx'
import { Problem } from './ui/notice.tsx'

const PLACES: readonly (readonly [place: TokenPlace, label: string])[] = [
  ['memory', 'until this page is closed or reloaded'],
  ['tab', 'until this tab is closed'],
  ['browser', 'in this browser, until you choose “Forget token”'],
]

const REJECTED = new Error('The server rejected the access token or link: unknown, used, expired or revoked.')

const PLACE_KEY = 'headwater-console-remember'

/** The place that was chosen the last time. */
function rememberedPlace(): TokenPlace {
  const stored = readStored(() => localStorage, PLACE_KEY)
  return PLACES.find(([place]) => place === stored)?.[0] ?? 'memory'
}

/** Asks for an access token. */
export function TokenForm(props: {
  readonly isRejected: boolean
  readonly onToken: (token: string, place: TokenPlace) => void
}) {
  const { isRejected, onToken } = props
  const [token, setToken] = useState('')
  const [place, setPlace] = useState<TokenPlace>(rememberedPlace)
  const field = useRef<HTMLInputElement>(null)
  useLayoutEffect(() => field.current!.focus(), [])
  // As servers accept it: anything else cannot be a header.
  const isValid = /^[!-~]+$/.test(token.trim())
  return (
    <form
      class="panel narrow"
      onSubmit={(event) => {
        event.preventDefault()
        if (!isValid) return
        writeStored(() => localStorage, PLACE_KEY, place)
        onToken(token.trim(), place)
      }}
    >
      <h1 tabIndex={-1}>Access token</h1>
      <p>
        This server requires an access token. <code>headwater serve</code> prints its root token at the first
        start, and a link that signs in once.
      </p>
      <Problem error={isRejected ? REJECTED : undefined} />
      <Field
        label="Access token"
        problem={token === '' || isValid ? undefined : 'A token has visible ASCII characters only'}
      >
        {(control) => (
          <input
            {...control}
            ref={field}
            type="password"
            autocomplete="off"
            spellcheck={false}
            value={token}
            onInput={(event) => setToken(event.currentTarget.value)}
          />
        )}
      </Field>
      <fieldset>
        <legend>Remember it</legend>
        {PLACES.map(([value, label]) => (
          <label key={value} class="check">
            <input
              type="radio"
              name="place"
              value={value}
              checked={place === value}
              onChange={() => setPlace(value)}
            />
            <span>{label}</span>
          </label>
        ))}
      </fieldset>
      <footer>
        <button type="submit" class="primary" disabled={!isValid}>
          Connect
        </button>
      </footer>
    </form>
  )
}
