import type { ComponentChildren } from 'preact'
import type { Access } from './access.tsx'
import { useConsole } from './context.ts'
import type { ConsoleRoute } from './route.ts'
import { Button, Link } from './ui/elements.tsx'
import { Select } from './ui/fields.tsx'

export const THEMES = ['system', 'light', 'dark'] as const
export type Theme = (typeof THEMES)[number]

/** The bar above every view. */
export function PageHeader(props: {
  readonly route: ConsoleRoute
  readonly access: Access
  readonly theme: Theme
  readonly onTheme: (theme: Theme) => void
  readonly onForget: () => void
  readonly children: ComponentChildren
}) {
  const { route, access, theme, onTheme, onForget, children } = props
  const { connection, hasAddress } = useConsole()
  const { view } = route
  return (
    <header class="bar">
      <span class="brand">headwater</span>
      <nav aria-label="Console">
        <Link to={{ view: 'basins' }} current={view !== 'tokens' && view !== 'usage'} shortcut="g b">
          Basins
        </Link>
        <Link to={{ view: 'tokens' }} current={view === 'tokens'} shortcut="g t">
          Access tokens
        </Link>
        <Link to={{ view: 'usage' }} current={view === 'usage'} shortcut="g u">
          Usage
        </Link>
      </nav>
      <span class="spacer" />
      <span class="server">
        {hasAddress ? connection.target.url.replace(/^https?:\/\//, '') : 'in this page'}
      </span>
      {access === 'open' && hasAddress && (
        <span class="tag" title="The server takes requests without an access token">
          no token needed
        </span>
      )}
      {connection.isAuthorized && (
        <Button class="quiet" onClick={onForget}>
          Forget token
        </Button>
      )}
      <Select
        label="Colours"
        value={theme}
        options={[
          ['system', 'Auto'],
          ['light', 'Light'],
          ['dark', 'Dark'],
        ]}
        onChange={onTheme}
      />
      {children}
    </header>
  )
}
