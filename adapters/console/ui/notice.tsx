import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { HeadwaterError } from '../../../src/model/errors.ts'

/** An error, with its code; nothing if there is none. */
export function Problem(props: {
  readonly error: Error | undefined
  /** Tries again what failed. */
  readonly onRetry?: (() => void) | undefined
}) {
  const { error, onRetry } = props
  if (error === undefined) return null
  return (
    <p class="notice bad" role="alert">
      {messageOf(error)}
      {HeadwaterError.is(error) && <code>{error.code}</code>} <Retry onRetry={onRetry} />
    </p>
  )
}

function Retry({ onRetry }: { readonly onRetry: (() => void) | undefined }) {
  if (onRetry === undefined) return null
  return (
    <button type="button" class="link" onClick={onRetry}>
      Try again
    </button>
  )
}

/** A connection that was lost, and when the next attempt follows. */
export function LostConnection(props: {
  readonly message: string
  /** The time of the next attempt, in milliseconds since the Unix epoch. */
  readonly retryAt: number
  readonly onRetry: () => void
}) {
  const { message, retryAt, onRetry } = props
  const [now, setNow] = useState(Date.now)
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 250)
    return () => clearInterval(timer)
  }, [])
  const seconds = Math.ceil((retryAt - now) / 1000)
  return (
    <p class="notice bad">
      <span role="alert">Connection lost: {message}.</span>{' '}
      {seconds > 0 ? `Next attempt in ${seconds} s.` : 'Trying again …'} <Retry onRetry={onRetry} />
    </p>
  )
}

/** The message of an error, with the fencing token or the tail, which are only in its details. */
function messageOf(error: Error): string {
  const { message, fencingToken, tail } = error as Partial<HeadwaterError> & Error
  if (fencingToken === '') return 'the stream has no fencing token'
  if (fencingToken !== undefined) return `the fencing token of the stream is ${JSON.stringify(fencingToken)}`
  return tail === undefined ? message : `${message}: the tail is ${tail.seqNum}`
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
