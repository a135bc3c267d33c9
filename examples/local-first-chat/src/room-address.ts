/** Where a room is found: the part of the page's address behind `#`. */
export function addressOf(room: string): string {
  return `#/${encodeURIComponent(room)}`
}

/** Undefined when the address names none. */
export function roomAt(hash: string): string | undefined {
  try {
    return decodeURIComponent(hash.replace(/^#\/?/, '')) || undefined
  } catch {
    return undefined
  }
}
