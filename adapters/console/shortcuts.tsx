import { useLayoutEffect, useState } from 'preact/hooks'
import { Dialog, DialogButton } from './ui/dialog.tsx'
import { Choice } from './ui/fields.tsx'

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

/** Keys that work in a list of records. */
const LIST_KEYS: readonly (readonly [keys: string, does: string])[] = [
  ['↑ ↓', 'Select the previous or next record'],
  ['Page up, Page down', 'Move by a screen'],
  ['Home, End', 'Go to the first or last record'],
  ['Escape', 'Close the record'],
]

const LIST_MOVES = ['ArrowDown', 'ArrowUp', 'PageDown', 'PageUp', 'Home', 'End']

/** The elements that take keys themselves. */
const FIELDS = 'input, textarea, select, dialog'
/** The elements that the arrow keys scroll or move in. */
const SCROLLED = '[tabindex="0"], summary, button'

/**
 * Returns a listener for `keydown` that clicks, or focuses, the element with the shortcut. Typing in a field,
 * and keys with Ctrl, Alt or Meta, are left alone.
 */
function shortcutListener(root: () => ParentNode): (event: KeyboardEvent) => void {
  let prefix = ''
  return (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return
    // The target itself is only visible in the path of an event that leaves a shadow root.
    const [target] = event.composedPath()
    const isWithin = (selector: string) => target instanceof Element && target.closest(selector) !== null
    if (isWithin(FIELDS)) return
    if (LIST_MOVES.includes(event.key)) {
      const list = root().querySelector<HTMLElement>('.rows')
      // They move in the list of records at once, without a click on it.
      if (list === null || isWithin(SCROLLED)) return
      event.preventDefault()
      list.focus()
      list.dispatchEvent(new KeyboardEvent('keydown', { key: event.key }))
      return
    }
    if (event.key.length !== 1) return
    const keys = CSS.escape(prefix + event.key)
    prefix = event.key === 'g' ? 'g ' : ''
    const element = root().querySelector<HTMLElement>(`[aria-keyshortcuts="${keys}"]`)
    if (element === null) return
    event.preventDefault()
    const isField = element instanceof HTMLInputElement
    // If nothing has the focus, a dialog that this opens returns it to the button.
    if (isField || (element.getRootNode() as ShadowRoot).activeElement === null) element.focus()
    if (!isField) element.click()
  }
}

/** The shortcuts: a button that lists them, and turns them off. */
export function Shortcuts(props: { readonly root: () => HTMLElement; readonly ownsPage: boolean }) {
  const { root, ownsPage } = props
  const [isOn, setOn] = useState(true)
  // Not `useEffect`, after which a key that follows at once would still count.
  useLayoutEffect(() => {
    if (!isOn) return
    const target: EventTarget = ownsPage ? document : root()
    const listener = shortcutListener(root) as EventListener
    target.addEventListener('keydown', listener)
    return () => target.removeEventListener('keydown', listener)
  }, [ownsPage, isOn])
  return (
    <DialogButton text="?" class="quiet icon" aria-label="Keyboard shortcuts" aria-keyshortcuts="?">
      {(close) => (
        <Dialog title="Keyboard shortcuts" onClose={close}>
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
          <Choice
            label="Shortcuts of a single key are on"
            checked={isOn}
            onChange={(event) => setOn(event.currentTarget.checked)}
          />
        </Dialog>
      )}
    </DialogButton>
  )
}
