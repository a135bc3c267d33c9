/** The fragment of the page's URL that shows a room. */
export function addressOf(room: string): string {
  return `#/${encodeURIComponent(room)}`
}

/** The room of a fragment; undefined if it names none. */
export function roomAt(hash: string): string | undefined {
  try {
    return decodeURIComponent(hash.replace(/^#\/?/, '')) || undefined
  } catch {
    return undefined
  }
}
