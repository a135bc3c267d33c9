import type { ComponentChildren } from 'preact'
import { useConsole } from '../context.ts'
import { type ConsoleRoute, fragmentOf } from '../route.ts'

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

/** Links to the parts of a view. */
export function Tabs<Tab extends string>(props: {
  readonly label: string
  readonly tabs: readonly (readonly [tab: Tab, title: string])[]
  readonly current: Tab
  readonly to: (tab: Tab) => ConsoleRoute
}) {
  const { label, tabs, current, to } = props
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map(([tab, title]) => (
        <Link key={tab} to={to(tab)} current={tab === current}>
          {title}
        </Link>
      ))}
    </nav>
  )
}
