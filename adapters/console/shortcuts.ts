/** The keys of the console, as `aria-keyshortcuts` of what they act on names them, and what they do. */
export const SHORTCUTS: readonly (readonly [keys: string, does: string])[] = [
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
export const LIST_KEYS: readonly (readonly [keys: string, does: string])[] = [
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
