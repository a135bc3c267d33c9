import type { RequestRouter } from '../http/router.ts'

/** The path that the protocol reserves for subscriptions: not a stream, although this server has none. */
const RESERVED = /^(_|%5f){2}ds(\/|$)/i

/** The name of a stream in a path, still percent-encoded; undefined if the path is not that of a stream. */
export function streamInPath(path: string, root: string): string | undefined {
  if (!path.startsWith(`${root}/`)) return undefined
  const name = path.slice(root.length + 1)
  return name === '' || RESERVED.test(name) ? undefined : name
}

/**
 * Returns the same for a handler that is mounted at `prefix`, whether the framework has removed the prefix or
 * not.
 */
export function streamInMountedPath(path: string, root: string, prefix: string): string | undefined {
  const isMounted = prefix !== '' && path.startsWith(`${prefix}/`)
  return (isMounted ? streamInPath(path.slice(prefix.length), root) : undefined) ?? streamInPath(path, root)
}

/** Finds the stream of a path: everything below `root`, slashes included. */
export function streamRouter<Methods>(basin: string, root: string, target: Methods): RequestRouter<Methods> {
  const pattern = `${root}/{stream}`
  return {
    match(path, prefix) {
      const stream = streamInMountedPath(path, root, prefix)
      return stream === undefined ? undefined : { pattern, target, parameters: { basin, stream } }
    },
  }
}
