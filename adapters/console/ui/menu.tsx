import type { ComponentChildren } from 'preact'
import { useRef } from 'preact/hooks'

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
