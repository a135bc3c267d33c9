import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'
import { useConsole } from '../context.ts'
import { type CurlCall, curlCommand } from '../snippets.ts'

/** Copies a text. */
export function CopyButton(props: {
  readonly text: () => string
  readonly label?: string | undefined
  readonly done?: string | undefined
  readonly class?: string | undefined
}) {
  const { text, label = 'Copy', done = 'Copied' } = props
  const { announce } = useConsole()
  return (
    <button
      type="button"
      class={props.class}
      onClick={async ({ currentTarget }) => {
        const isCopied = await copy(text(), currentTarget)
        announce(isCopied ? done : 'The browser does not permit copying')
      }}
    >
      {label}
    </button>
  )
}

/** Copies a text, from a field beside a button where the page has no clipboard, because it is not secure. */
async function copy(text: string, button: HTMLButtonElement): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    const field = document.createElement('textarea')
    field.value = text
    button.after(field)
    field.select()
    const isCopied = document.execCommand('copy')
    field.remove()
    button.focus()
    return isCopied
  }
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
  const id = useId()
  return (
    <>
      <button type="button" class="quiet" popovertarget={id}>
        {label} ▾
      </button>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the clicks are those of its buttons. */}
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: and so are the keys. */}
      <div id={id} popover="auto" class="menu" onClick={({ currentTarget }) => currentTarget.hidePopover()}>
        {children}
      </div>
    </>
  )
}
