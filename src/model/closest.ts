/** Longer names are not compared, which bounds the time that a caller can cost. */
const CHARACTERS_MAX = 40

/** Returns the name that a misspelt one probably means, or undefined if none is similar. */
export function closestName(given: string, names: readonly string[]): string | undefined {
  if (given.length > CHARACTERS_MAX) return undefined
  const text = plain(given)
  let closest: string | undefined
  // A third of the letters may differ.
  let best = Math.floor(text.length / 3) + 1
  for (const name of names) {
    const other = plain(name)
    const isPart = text.length > 2 && other.includes(text)
    const edits = isPart ? Math.min(1, editDistance(text, other)) : editDistance(text, other)
    if (edits >= best) continue
    best = edits
    closest = name
  }
  return closest
}

/** Makes `match_seq_num`, `matchSeqnum` and `matchSeqNum` equal. */
function plain(name: string): string {
  return name.toLowerCase().replace(/[_-]/g, '')
}

/** The Levenshtein distance. */
function editDistance(a: string, b: string): number {
  const row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    let diagonal = i - 1
    row[0] = i
    for (let j = 1; j <= b.length; j++) {
      const edits = Math.min(row[j]! + 1, row[j - 1]! + 1, diagonal + (a[i - 1] === b[j - 1] ? 0 : 1))
      diagonal = row[j]!
      row[j] = edits
    }
  }
  return row[b.length]!
}
