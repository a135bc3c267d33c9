import type { ComponentChildren } from 'preact'
import { useId, useLayoutEffect, useRef } from 'preact/hooks'
import { useSubmit } from './async.ts'
import { TextField } from './field.tsx'
import { Problem } from './notice.tsx'

/** The elements that get the focus first, rather than the button that closes the dialog. */
const FIRST_FIELD = 'form input, form select, form footer button, footer button'

/** A modal dialog, which Escape closes. Focus returns to where it was. */
export function Dialog(props: {
  readonly title: string
  readonly onClose: () => void
  readonly isWide?: boolean | undefined
  readonly children: ComponentChildren
}) {
  const { title, onClose, isWide = false, children } = props
  const titleId = useId()
  const ref = useRef<HTMLDialogElement>(null)
  useLayoutEffect(() => {
    const dialog = ref.current!
    dialog.showModal()
    dialog.querySelector<HTMLElement>(FIRST_FIELD)?.focus()
    return () => dialog.close()
  }, [])
  return (
    <dialog
      ref={ref}
      class={isWide ? 'wide' : ''}
      aria-labelledby={titleId}
      onCancel={(event) => {
        event.preventDefault()
        onClose()
      }}
    >
      <div class="heading">
        <h2 id={titleId}>{title}</h2>
        <button type="button" class="quiet icon" aria-label="Close" onClick={onClose}>
          ✕
        </button>
      </div>
      {children}
    </dialog>
  )
}

/** Asks before something that cannot be undone. If `name` is given, it must be typed first. */
export function Confirm(props: {
  readonly title: string
  readonly action: string
  readonly name?: string | undefined
  readonly onClose: () => void
  readonly onConfirm: () => Promise<void>
  readonly children: ComponentChildren
}) {
  const { title, action, name, onClose, onConfirm, children } = props
  const { isBusy, error, onSubmit } = useSubmit(onConfirm)
  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={onSubmit}>
        {children}
        {name !== undefined && (
          <TextField
            label={`Type “${name}” to confirm`}
            name="name"
            isRequired
            check={(typed) => (typed === name ? undefined : 'This is another name')}
          />
        )}
        <DialogActions action={action} isDangerous isDisabled={isBusy} error={error} onClose={onClose} />
      </form>
    </Dialog>
  )
}

/** The end of a form in a dialog: its error, and buttons that close the dialog and submit the form. */
export function DialogActions(props: {
  readonly action: string
  readonly isDangerous?: boolean | undefined
  readonly isDisabled: boolean
  readonly error: Error | undefined
  readonly onClose: () => void
}) {
  const { action, isDangerous = false, isDisabled, error, onClose } = props
  return (
    <>
      <Problem error={error} />
      <footer>
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <button type="submit" class={isDangerous ? 'danger solid' : 'primary'} disabled={isDisabled}>
          {action}
        </button>
      </footer>
    </>
  )
}
