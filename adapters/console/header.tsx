import { useState } from 'preact/hooks'
import type { Access } from './access.tsx'
import { useConsole } from './context.ts'
import type { ConsoleRoute } from './route.ts'
import { LIST_KEYS, SHORTCUTS } from './shortcuts.ts'
import { Dialog } from './ui/dialog.tsx'
import { Checkbox, Select } from './ui/field.tsx'
import { Link } from './ui/link.tsx'

export const THEMES = ['system', 'light', 'dark'] as const
export type Theme = (typeof THEMES)[number]

/** The bar above every view. */
export function PageHeader(props: {
  readonly route: ConsoleRoute
  readonly access: Access
  readonly theme: Theme
  readonly onTheme: (theme: Theme) => void
  readonly hasShortcuts: boolean
  readonly onShortcuts: (enabled: boolean) => void
  readonly onForget: () => void
}) {
  const { route, access, theme, onTheme, hasShortcuts, onShortcuts, onForget } = props
  const { connection, hasAddress } = useConsole()
  const [isHelpShown, setHelpShown] = useState(false)
  const isOnBasins = route.view === 'basins' || route.view === 'basin' || route.view === 'stream'
  return (
    <header class="bar">
      <span class="brand">headwater</span>
      <nav aria-label="Console">
        <Link to={{ view: 'basins' }} current={isOnBasins} shortcut="g b">
          Basins
        </Link>
        <Link to={{ view: 'tokens' }} current={route.view === 'tokens'} shortcut="g t">
          Access tokens
        </Link>
        <Link to={{ view: 'usage' }} current={route.view === 'usage'} shortcut="g u">
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
        <button type="button" class="quiet" onClick={onForget}>
          Forget token
        </button>
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
      <button
        type="button"
        class="quiet icon"
        aria-label="Keyboard shortcuts"
        aria-keyshortcuts="?"
        onClick={() => setHelpShown(true)}
      >
        ?
      </button>
      {isHelpShown && (
        <Dialog title="Keyboard shortcuts" onClose={() => setHelpShown(false)}>
          <dl class="keys">
            {[...SHORTCUTS, ...LIST_KEYS].map(([keys, does]) => (
              <div key={keys}>
                <dt>
                  <kbd>{keys}</kbd>
                </dt>
                <dd>{does}</dd>
              </div>
            ))}
          </dl>
          <Checkbox label="Shortcuts of a single key are on" checked={hasShortcuts} onChange={onShortcuts} />
        </Dialog>
      )}
    </header>
  )
}
