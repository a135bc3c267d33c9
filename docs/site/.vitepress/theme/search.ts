/** Events that precede a search: the pointer on the button, or its focus. */
const BEFORE_SEARCH = ['pointerover', 'focusin']

/**
 * Loads the index of the search when the reader is about to open it. Until it is there, the box shows a line
 * that says so: `text.css`.
 */
export function loadSearchEarly(): void {
  if (typeof document === 'undefined') return
  const root = document.documentElement
  let isLoading = false
  const load = async () => {
    if (isLoading) return
    isLoading = true
    root.dataset.search = 'loading'
    try {
      const { default: indexes } = await import('@localSearchIndex')
      await indexes.root()
    } finally {
      delete root.dataset.search
    }
  }
  const beforeSearch = ({ target }: Event) => {
    if (target instanceof Element && target.closest('.VPNavBarSearch') !== null) void load()
  }
  for (const type of BEFORE_SEARCH) document.addEventListener(type, beforeSearch)
  document.addEventListener('keydown', ({ key, ctrlKey, metaKey }) => {
    if (key === '/' || (key === 'k' && (ctrlKey || metaKey))) void load()
  })
}
