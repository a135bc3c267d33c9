type Fetch = typeof globalThis.fetch

/** One replacement of `globalThis.fetch`. */
interface Layer {
  /** Undefined where `fetch` was no property of the global object itself. */
  readonly before: PropertyDescriptor | undefined
  isOver: boolean
}

/** By the function that stands in for `fetch`. */
const layers = new WeakMap<Fetch, Layer>()

/**
 * Puts a function before `globalThis.fetch`; it is given what it does not answer itself: the `fetch` before. The returned function takes it away again, in whatever order several
 * of them are taken away: when the last is gone, the property is exactly what it was. Where somebody else has replaced `fetch` since, theirs stays, and what is
 * below it passes everything on.
 */
export function replaceFetch(answer: (next: Fetch) => Fetch): () => void {
  const before = Object.getOwnPropertyDescriptor(globalThis, 'fetch')
  const next = globalThis.fetch
  const own = answer(next)
  const layer: Layer = { before, isOver: false }
  const fetch: Fetch = (input, init) => (layer.isOver ? next : own)(input, init)
  layers.set(fetch, layer)
  Object.defineProperty(globalThis, 'fetch', {
    value: fetch,
    writable: true,
    configurable: true,
    enumerable: true,
  })
  return () => {
    layer.isOver = true
    restoreOuter()
  }
}

function restoreOuter(): void {
  for (let top = layers.get(globalThis.fetch); top?.isOver; top = layers.get(globalThis.fetch)) {
    if (top.before === undefined) Reflect.deleteProperty(globalThis, 'fetch')
    else Object.defineProperty(globalThis, 'fetch', top.before)
  }
}
