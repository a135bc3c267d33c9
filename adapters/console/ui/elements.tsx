import type { ComponentChildren, ComponentProps } from 'preact'
import { useId } from 'preact/hooks'
import { HeadwaterError } from '../../../src/model/errors.ts'
import { type Loaded, useConsole } from '../context.ts'
import { type ConsoleRoute, fragmentOf } from '../route.ts'
import { type CurlCall, curlCommand } from '../snippets.ts'

/** A link to a part of the console. */
export function Link(props: {
  readonly to: ConsoleRoute
  readonly current?: boolean | undefined
  readonly shortcut?: string | undefined
  readonly children: ComponentChildren
}) {
  const { to, current = false, shortcut, children } = props
  const { navigate } = useConsole()
  return (
    <a
      href={fragmentOf(to)}
      aria-current={current ? 'page' : undefined}
      aria-keyshortcuts={shortcut}
      onClick={(event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return
        // In the page of an app, the address belongs to the app.
        event.preventDefault()
        navigate(to)
      }}
    >
      {children}
    </a>
  )
}

/** A button that does not submit its form. */
export function Button(props: ComponentProps<'button'>) {
  return <button type="button" {...props} />
}

/** Copies a text. */
export function CopyButton(props: {
  readonly text: () => string
  readonly label?: string | undefined
  readonly class?: string | undefined
}) {
  const { text, label = 'Copy' } = props
  const { announce } = useConsole()
  return (
    <Button
      class={props.class}
      onClick={async () => {
        try {
          await navigator.clipboard.writeText(text())
          announce('Copied')
        } catch (error) {
          const isOfBrowser = navigator.clipboard === undefined || error instanceof DOMException
          announce(
            isOfBrowser
              ? 'The browser permits copying only over HTTPS and on localhost'
              : (error as Error).message,
          )
        }
      }}
    >
      {label}
    </Button>
  )
}

/** Copies a call as a shell command; nothing where the server has no address. */
export function CurlButton({ call }: { readonly call: () => CurlCall }) {
  const { connection, hasAddress } = useConsole()
  if (!hasAddress) return null
  const text = () => curlCommand(call(), connection)
  return <CopyButton label="Copy as curl" class="quiet" text={text} />
}

/** A button that opens a list of actions, which closes after one. */
export function Menu({ label, children }: { readonly label: string; readonly children: ComponentChildren }) {
  const id = useId()
  return (
    <>
      <Button class="quiet" popovertarget={id}>
        {label} ▾
      </Button>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the clicks are those of its buttons. */}
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: and so are the keys. */}
      <div id={id} popover="auto" class="menu" onClick={({ currentTarget }) => currentTarget.hidePopover()}>
        {children}
      </div>
    </>
  )
}

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
      {HeadwaterError.is(error) && <code>{error.code}</code>}{' '}
      {onRetry && (
        <Button class="link" onClick={onRetry}>
          Try again
        </Button>
      )}
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

/** The error of a load, or a placeholder while there is no content, which appears after a while. */
export function LoadStatus({ of }: { readonly of: Loaded<unknown> }) {
  return (
    <>
      <Problem error={of.error} />
      {of.data === undefined && of.isLoading && <p class="loading">Loading …</p>}
    </>
  )
}

/** A scrollable region that the keyboard can reach. */
export function Scroll(props: { readonly label: string; readonly children: ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: without the focus, it could not be scrolled by keys.
    <section class="scroll" tabIndex={0} aria-label={props.label}>
      {props.children}
    </section>
  )
}
