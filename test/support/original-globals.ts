const NAMES = ['setTimeout', 'setInterval', 'setImmediate', 'queueMicrotask', 'fetch', 'Response'] as const

const originals = NAMES.map((name) => globalThis[name])

/** Throws if a file left a replacement of a global behind, which would break later files of the process. */
export function assertOriginalGlobals(): void {
  const replaced = NAMES.filter((name, index) => globalThis[name] !== originals[index])
  if (replaced.length > 0) throw new Error(`the file replaced ${replaced.join(', ')}`)
}
