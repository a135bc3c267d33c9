import { useState } from 'preact/hooks'
import { useConsole } from '../context.ts'
import { type CurlCall, curlCommand } from '../curl.ts'
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
