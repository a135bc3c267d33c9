import type { ComponentChildren } from 'preact'
import { ApiError } from '../api/client.ts'

/** An error, with the code and the status of the server; nothing if there is none. */
export function Problem({ error }: { readonly error: Error | undefined }) {
  if (error === undefined) return null
  const code = error instanceof ApiError ? [error.code, error.status || ''].join(' ').trim() : ''
  return (
    <p class="notice bad" role="alert">
      {error.message}
      {code !== '' && <code>{code}</code>}
    </p>
  )
}

/** A neutral remark. */
export function Note({ children }: { readonly children: ComponentChildren }) {
  return <p class="notice">{children}</p>
}
