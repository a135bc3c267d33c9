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

/** A placeholder while content is loading. The style sheet shows it only after a while. */
export function Loading() {
  return <p class="loading">Loading …</p>
}

/** A region that scrolls by itself, which the keyboard can reach. */
export function Scroll(props: { readonly label: string; readonly children: ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: without the focus, it could not be scrolled by keys.
    <section class="scroll" tabIndex={0} aria-label={props.label}>
      {props.children}
    </section>
  )
}
