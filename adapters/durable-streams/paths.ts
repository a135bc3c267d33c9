import type { RequestRouter } from '../http/router.ts'

/** The name of a stream in a path, still percent-encoded; undefined if the path is not that of a stream. */
export function streamInPath(path: string, root: string): string | undefined {
  return path.startsWith(`${root}/`) && path.length > root.length + 1
    ? path.slice(root.length + 1)
    : undefined
}

/** Finds the stream of a path: everything below `root`, slashes included. */
export function streamRouter<Methods>(basin: string, root: string, target: Methods): RequestRouter<Methods> {
  const pattern = `${root}/{stream}`
  return {
    match(path, prefix) {
      const isMounted = prefix !== '' && path.startsWith(`${prefix}/`)
      const mounted = isMounted ? streamInPath(path.slice(prefix.length), root) : undefined
      const stream = mounted ?? streamInPath(path, root)
      return stream === undefined ? undefined : { pattern, target, parameters: { basin, stream } }
    },
  }
}
