import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'

/** What has the focus first, rather than the button that closes the dialog. */
const FIRST_FIELD = 'form input, form select, form footer button'

/** A modal dialog, which Escape closes. Focus returns to where it was. */
export function Dialog(props: {
  readonly title: string
  readonly onClose: () => void
  readonly isWide?: boolean
  readonly children: ComponentChildren
}) {
  const { title, onClose, isWide = false, children } = props
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
      aria-labelledby="dialog-title"
      onCancel={(event) => {
        event.preventDefault()
        onClose()
      }}
    >
      <div class="heading">
        <h2 id="dialog-title">{title}</h2>
        <button type="button" class="quiet" aria-label="Close" onClick={onClose}>
          ✕
        </button>
      </div>
      {children}
    </dialog>
  )
}
