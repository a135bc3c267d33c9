import type { ComponentChildren, ComponentProps } from 'preact'
import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { useConsole } from '../context.ts'
import { Button, Problem } from './elements.tsx'
import { type FormValues, TextField, useSubmit } from './fields.tsx'

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
      <h2 id={titleId}>{title}</h2>
      {children}
      {/* At the end, so that the first field has the focus. */}
      <Button class="quiet icon" aria-label="Close" onClick={onClose}>
        ✕
      </Button>
    </dialog>
  )
}

/** A form in a dialog, with its error, and buttons that close the dialog and submit the form. */
export function FormDialog(props: {
  readonly title: string
  readonly action: string
  readonly isDangerous?: boolean | undefined
  readonly isWide?: boolean | undefined
  /** Whether the form cannot be submitted. */
  readonly isDisabled?: boolean | undefined
  readonly onClose: () => void
  readonly onSubmit: (values: FormValues) => Promise<void>
  readonly children: ComponentChildren
}) {
  const { title, action, isDangerous = false, isWide, isDisabled = false, onClose, children } = props
  const { isBusy, error, onSubmit } = useSubmit(props.onSubmit)
  return (
    <Dialog title={title} isWide={isWide} onClose={onClose}>
      <form onSubmit={onSubmit}>
        {children}
        <Problem error={error} />
        <footer>
          <Button onClick={onClose}>Cancel</Button>
          <button
            type="submit"
            class={isDangerous ? 'danger solid' : 'primary'}
            disabled={isBusy || isDisabled}
          >
            {action}
          </button>
        </footer>
      </form>
    </Dialog>
  )
}

/** A button that opens a dialog, which gets a function that closes it. */
export function DialogButton(
  props: Omit<ComponentProps<'button'>, 'children'> & {
    readonly text: string
    readonly children: (close: () => void) => ComponentChildren
  },
) {
  const { text, children, ...button } = props
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <Button {...button} onClick={() => setOpen(true)}>
        {text}
      </Button>
      {isOpen && children(() => setOpen(false))}
    </>
  )
}

/** A button that opens a form, which creates something with a name. */
export function CreateButton(props: {
  readonly noun: string
  /** The rule of names. */
  readonly hint: string
  readonly check: (name: string) => string | undefined
  readonly create: (name: string, values: FormValues) => Promise<unknown>
  readonly onCreated: (name: string) => void
  /** The fields after the name. */
  readonly children: ComponentChildren
}) {
  const { noun, hint, check, create, onCreated, children } = props
  const { announce } = useConsole()
  const submit = async (values: FormValues) => {
    const { name = '' } = values
    await create(name, values)
    announce(`Created ${name}`)
    onCreated(name)
  }
  return (
    <DialogButton text={`Create ${noun}`} class="primary" aria-keyshortcuts="c">
      {(close) => (
        <FormDialog title={`Create ${noun}`} action="Create" onClose={close} onSubmit={submit}>
          <TextField label="Name" name="name" hint={hint} check={check} required />
          {children}
        </FormDialog>
      )}
    </DialogButton>
  )
}

/** A button that asks before something that cannot be undone. If `name` is given, it must be typed first. */
export function ConfirmButton(props: {
  readonly action: string
  /** The title of the dialog; the action by default. */
  readonly title?: string | undefined
  readonly class: string
  /** The name of the button if its text is not enough. */
  readonly label?: string | undefined
  readonly name?: string | undefined
  readonly onConfirm: () => Promise<void>
  readonly children: ComponentChildren
}) {
  const { action, title = action, label, name, onConfirm, children } = props
  return (
    <DialogButton text={action} class={props.class} aria-label={label}>
      {(close) => (
        <FormDialog
          title={title}
          action={action}
          isDangerous
          onClose={close}
          onSubmit={() => onConfirm().then(close)}
        >
          {children}
          {name !== undefined && (
            <TextField
              label={`Type “${name}” to confirm`}
              name="name"
              required
              check={(typed) => (typed === name ? undefined : 'This is another name')}
            />
          )}
        </FormDialog>
      )}
    </DialogButton>
  )
}
