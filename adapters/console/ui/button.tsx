import type { ComponentChildren } from 'preact'
import { useRef, useState } from 'preact/hooks'
import { useConsole } from '../context.ts'
import { type CurlCall, curlCommand } from '../snippets.ts'
import { Dialog } from './dialog.tsx'
import { Scroll } from './notice.tsx'

/** Copies a text; where the browser does not permit it, shows it instead. */
export function CopyButton(props: {
  readonly text: () => string
  readonly label?: string | undefined
  readonly done?: string | undefined
  readonly class?: string | undefined
}) {
  const { text, label = 'Copy', done = 'Copied' } = props
  const { announce } = useConsole()
  const [shown, setShown] = useState<string>()
  const copy = async () => {
    const copied = text()
    try {
      await navigator.clipboard.writeText(copied)
      announce(done)
    } catch {
      setShown(copied)
    }
  }
  return (
    <>
      <button type="button" class={props.class} onClick={copy}>
        {label}
      </button>
      {shown !== undefined && (
        <Dialog title={label} onClose={() => setShown(undefined)} isWide>
          <Scroll label={label}>
            <pre>{shown}</pre>
          </Scroll>
        </Dialog>
      )}
    </>
  )
}

/** Copies a call as a shell command; nothing where the server has no address. */
export function CurlButton({ call }: { readonly call: () => CurlCall }) {
  const { connection, hasAddress } = useConsole()
  if (!hasAddress) return null
  const text = () => curlCommand(call(), connection.target, connection.isAuthorized)
  return <CopyButton label="Copy as curl" done="Copied the curl command" class="quiet" text={text} />
}

/** A button that opens a list of actions, which closes after one. */
export function Menu({ label, children }: { readonly label: string; readonly children: ComponentChildren }) {
  const details = useRef<HTMLDetailsElement>(null)
  const close = () => {
    details.current!.open = false
    details.current!.querySelector('summary')!.focus()
  }
  return (
    <details
      ref={details}
      class="menu"
      onClick={(event) => event.target instanceof HTMLButtonElement && close()}
      onKeyDown={(event) => event.key === 'Escape' && close()}
      onFocusOut={({ currentTarget, relatedTarget }) => {
        if (relatedTarget !== null && !currentTarget.contains(relatedTarget as Element))
          currentTarget.open = false
      }}
    >
      <summary>{label}</summary>
      <div>{children}</div>
    </details>
  )
}
