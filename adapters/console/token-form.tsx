import { useState } from 'preact/hooks'
import type { TokenPlace } from './api/credentials.ts'
import { Field } from './ui/field.tsx'

const PLACES: readonly (readonly [place: TokenPlace, label: string])[] = [
  ['memory', 'until this page is closed or reloaded'],
  ['tab', 'until this tab is closed'],
  ['browser', 'in this browser, until you choose “Forget token”'],
]

/** Asks for an access token. */
export function TokenForm(props: {
  readonly isRejected: boolean
  readonly onToken: (token: string, place: TokenPlace) => void
}) {
  const { isRejected, onToken } = props
  const [token, setToken] = useState('')
  const [place, setPlace] = useState<TokenPlace>('memory')
  // As servers accept it: anything else cannot be a header.
  const isValid = /^[!-~]+$/.test(token.trim())
  return (
    <form
      class="panel narrow"
      onSubmit={(event) => {
        event.preventDefault()
        if (isValid) onToken(token.trim(), place)
      }}
    >
      <h1>Access token</h1>
      <p>
        {isRejected
          ? 'The server rejected the access token: it is unknown, expired or revoked.'
          : 'This server requires an access token. The first start of headwater serve prints its root token.'}
      </p>
      <Field
        label="Access token"
        problem={token === '' || isValid ? undefined : 'A token has visible ASCII characters only'}
      >
        {(id, describedBy) => (
          <input
            id={id}
            type="password"
            autocomplete="off"
            spellcheck={false}
            aria-describedby={describedBy}
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
