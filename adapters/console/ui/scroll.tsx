import type { ComponentChildren } from 'preact'

/** A region that scrolls by itself, which the keyboard can reach. */
export function Scroll(props: {
  readonly label: string
  readonly class?: string
  readonly children: ComponentChildren
}) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: without the focus, it could not be scrolled by keys.
    <section class={`scroll ${props.class ?? ''}`} tabIndex={0} aria-label={props.label}>
      {props.children}
    </section>
  )
}
