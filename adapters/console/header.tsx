import { useState } from 'preact/hooks'
import type { Access } from './access.tsx'
import { useConsole } from './context.ts'
import type { ConsoleRoute } from './route.ts'
import { Link } from './ui/elements.tsx'
import { Checkbox, Dialog, Select } from './ui/form.tsx'

export const THEMES = ['system', 'light', 'dark'] as const
export type Theme = (typeof THEMES)[number]

/** The parts of the console. */
const PARTS = [
  ['basins', 'Basins', 'g b'],
  ['tokens', 'Access tokens', 'g t'],
  ['usage', 'Usage', 'g u'],
] as const

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
  const part = route.view === 'basin' || route.view === 'stream' ? 'basins' : route.view
  return (
    <header class="bar">
      <span class="brand">headwater</span>
      <nav aria-label="Console">
        {PARTS.map(([view, title, shortcut]) => (
          <Link key={view} to={{ view }} current={view === part} shortcut={shortcut}>
            {title}
          </Link>
        ))}
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

/** The keys of the console, as `aria-keyshortcuts` of what they act on names them, and what they do. */
const SHORTCUTS: readonly (readonly [keys: string, does: string])[] = [
  ['g b', 'Go to the basins'],
  ['g t', 'Go to the access tokens'],
  ['g u', 'Go to the usage of the account'],
  ['/', 'Search or filter'],
  ['c', 'Create a basin, a stream or a token'],
  ['p', 'Pause or resume the live tail'],
  ['e', 'Go to the end of the live tail'],
  ['?', 'Show the shortcuts'],
]

/** Keys that work in a list of records while it has the focus. */
const LIST_KEYS: readonly (readonly [keys: string, does: string])[] = [
  ['↑ ↓', 'Select the previous or next record'],
  ['Page up, Page down', 'Move by a screen'],
  ['Home, End', 'Go to the first or last record'],
  ['Escape', 'Close the record'],
]

const LIST_MOVES = ['ArrowDown', 'ArrowUp', 'PageDown', 'PageUp', 'Home', 'End']

/** Whether nothing that uses the arrow keys has the focus. */
function isUnfocused(target: EventTarget | undefined): boolean {
  return !(target instanceof Element) || target.closest('[tabindex="0"], summary, button, .rows') === null
}

const SEQUENCE_MS = 1000

/**
 * Returns a listener for `keydown` that clicks, or focuses, the element with the shortcut. Typing in a field,
 * and keys with Ctrl, Alt or Meta, are left alone.
 */
export function shortcutListener(root: () => ParentNode): (event: KeyboardEvent) => void {
  let prefix = ''
  let timer: ReturnType<typeof setTimeout> | undefined
  return (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return
    // The target itself is only visible in the path of an event that leaves a shadow root.
    const target = event.composedPath()[0]
    if (target instanceof Element && target.closest('input, textarea, select, dialog') !== null) return
    const list = root().querySelector<HTMLElement>('.rows')
    if (LIST_MOVES.includes(event.key)) {
      // The arrows move in the list at once, without a click on it, unless they scroll something else.
      if (list === null || target === list || !isUnfocused(target)) return
      event.preventDefault()
      list.focus()
      list.dispatchEvent(new KeyboardEvent('keydown', { key: event.key }))
      return
    }
    if (event.key.length !== 1) return
    const keys = prefix + event.key
    clearTimeout(timer)
    prefix = ''
    const element = root().querySelector<HTMLElement>(`[aria-keyshortcuts="${CSS.escape(keys)}"]`)
    if (element !== null) {
      event.preventDefault()
      if (element instanceof HTMLInputElement) element.focus()
      else {
        // Where a dialog that this opens returns the focus to, if nothing has it.
        if ((element.getRootNode() as ShadowRoot).activeElement === null) element.focus()
        element.click()
      }
    } else if (event.key === 'g') {
      prefix = 'g '
      timer = setTimeout(() => {
        prefix = ''
      }, SEQUENCE_MS)
    }
  }
}
