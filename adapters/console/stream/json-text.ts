const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[[\]{}:,]|[^\s"[\]{}:,]+/g

/** Deeper JSON is shown as text: nothing that is nested like this can be read as a tree. */
const DEPTH_MAX = 100

/** A JSON value that keeps its text: numbers that JavaScript cannot represent keep their digits. */
export interface JsonNode {
  /** Compact JSON. */
  readonly text: string
  /** The members of an object with their names, or the elements of an array; undefined for anything else. */
  readonly items?: readonly (readonly [name: string | undefined, value: JsonNode])[] | undefined
}

/** Parses JSON; undefined if the text is not JSON, or nested too deeply. */
export function jsonTreeOf(text: string): JsonNode | undefined {
  if (!/^\s*["[{\dtfn-]/.test(text)) return undefined
  try {
    JSON.parse(text)
    return nodeOf(text.matchAll(TOKEN), 0)
  } catch {
    return undefined
  }
}

/** Builds the next value of valid JSON; undefined at the end of an array or object. */
function nodeOf(tokens: RegExpStringIterator<RegExpExecArray>, depth: number): JsonNode | undefined {
  const [token] = tokens.next().value!
  if (token === ']' || token === '}') return undefined
  if (token !== '[' && token !== '{') return { text: token }
  if (depth === DEPTH_MAX) throw new RangeError('JSON is nested too deeply')
  const items: [string | undefined, JsonNode][] = []
  const texts: string[] = []
  for (let next = nodeOf(tokens, depth + 1); next !== undefined; next = nodeOf(tokens, depth + 1)) {
    if (token === '[') {
      items.push([undefined, next])
      texts.push(next.text)
    } else {
      tokens.next()
      const value = nodeOf(tokens, depth + 1)!
      items.push([JSON.parse(next.text), value])
      texts.push(`${next.text}:${value.text}`)
    }
    if (tokens.next().value![0] !== ',') break
  }
  return { text: `${token}${texts.join(',')}${token === '[' ? ']' : '}'}`, items }
}
