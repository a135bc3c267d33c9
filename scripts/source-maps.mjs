// Reads and writes the `mappings` of source maps: https://tc39.es/ecma426/.
const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'

function decodeNumbers(text) {
  const numbers = []
  let value = 0
  let shift = 0
  for (const character of text) {
    const digit = DIGITS.indexOf(character)
    value |= (digit & 31) << shift
    shift += 5
    if ((digit & 32) === 0) {
      numbers.push(value & 1 ? -(value >>> 1) : value >>> 1)
      value = 0
      shift = 0
    }
  }
  return numbers
}

function encodeNumber(number) {
  let rest = number < 0 ? (-number << 1) | 1 : number << 1
  let text = ''
  do {
    const digit = rest & 31
    rest >>>= 5
    text += DIGITS[rest > 0 ? digit | 32 : digit]
  } while (rest > 0)
  return text
}

/** An array of segments for each line: `{ column, source, line, sourceColumn }`, without names. */
export function decodeMappings(mappings) {
  let source = 0
  let line = 0
  let sourceColumn = 0
  return mappings.split(';').map((text) => {
    let column = 0
    return text.split(',').flatMap((encoded) => {
      const [columns, sources, lines, sourceColumns] = decodeNumbers(encoded)
      if (columns === undefined) return []
      column += columns
      if (sources === undefined) return { column }
      source += sources
      line += lines
      sourceColumn += sourceColumns
      return { column, source, line, sourceColumn }
    })
  })
}

export function encodeMappings(lines) {
  let previous = { source: 0, line: 0, sourceColumn: 0 }
  const encodeLine = (segments) => {
    let previousColumn = 0
    const encoded = segments.map((segment) => {
      const { column, source, line, sourceColumn } = segment
      const numbers = [column - previousColumn]
      previousColumn = column
      if (source !== undefined) {
        numbers.push(source - previous.source, line - previous.line, sourceColumn - previous.sourceColumn)
        previous = segment
      }
      return numbers.map(encodeNumber).join('')
    })
    return encoded.join(',')
  }
  return lines.map(encodeLine).join(';')
}

/**
 * Reduces a map to lines, which makes it an eighth as long: a stack trace has the line of the source, but no
 * column. Positions in sources that `isKept` rejects get none. Returns undefined if no source is left.
 */
export function reduceMap(map, isKept) {
  const kept = map.sources.filter(isKept)
  if (kept.length === 0) return undefined
  const indexes = map.sources.map((source) => kept.indexOf(source))
  const lines = decodeMappings(map.mappings).map((segments) => {
    const reduced = []
    for (const { column, source, line } of segments) {
      const index = indexes[source] ?? -1
      const last = reduced.at(-1)
      const mapped = index === -1 ? {} : { source: index, line, sourceColumn: 0 }
      if (last !== undefined && last.source === mapped.source && last.line === mapped.line) continue
      reduced.push({ column: last === undefined ? 0 : column, ...mapped })
    }
    return reduced
  })
  return { version: 3, sources: kept, names: [], mappings: encodeMappings(lines) }
}
