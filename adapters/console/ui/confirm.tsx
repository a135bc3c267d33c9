import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { Dialog } from './dialog.tsx'
import { Field } from './field.tsx'
import { Problem } from './notice.tsx'
import { useSubmit } from './use-submit.ts'

/** Asks before something that cannot be undone. If `name` is given, it must be typed first. */
export function Confirm(props: {
  readonly title: string
  readonly action: string
  readonly name?: string
  readonly onClose: () => void
  readonly onConfirm: () => Promise<void>
  readonly children: ComponentChildren
}) {
  const { title, action, name, onClose, onConfirm, children } = props
  const [typed, setTyped] = useState('')
  const { isBusy, error, onSubmit } = useSubmit(onConfirm)
  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={onSubmit}>
        {children}
        {name !== undefined && (
          <Field label={`Type “${name}” to confirm`}>
            {(id) => (
              <input
                id={id}
                value={typed}
                autocomplete="off"
                onInput={(e) => setTyped(e.currentTarget.value)}
              />
            )}
          </Field>
        )}
        <Problem error={error} />
        <footer>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="danger" disabled={isBusy || (name !== undefined && typed !== name)}>
            {action}
          </button>
        </footer>
      </form>
    </Dialog>
  )
}
