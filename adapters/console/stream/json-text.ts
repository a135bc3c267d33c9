const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[[\]{}:,]|[^\s"[\]{}:,]+/g

/** Deeper JSON is not indented: the indentation would outgrow the text. */
const DEPTH_MAX = 100

/**
 * Indents JSON and changes nothing else: numbers that JavaScript cannot represent keep their digits. Throws
 * `SyntaxError` if the text is not JSON, and `RangeError` if it is nested too deeply.
 */
export function indentJson(text: string): string {
  JSON.parse(text)
  const parts: string[] = []
  let depth = 0
  let before = ''
  for (const [token] of text.matchAll(TOKEN)) {
    const closes = token === ']' || token === '}'
    if (closes) depth--
    // Empty arrays and objects stay on one line.
    if (before === ',' || (isOpening(before) ? !closes : closes)) parts.push(`\n${'  '.repeat(depth)}`)
    parts.push(token === ':' ? ': ' : token)
    if (isOpening(token) && ++depth > DEPTH_MAX) throw new RangeError('JSON is nested too deeply')
    before = token
  }
  return parts.join('')
}

/** The elements of a JSON array as compact JSON, with the digits of their numbers. The text must be valid. */
export function elementsOfJson(text: string): string[] {
  const elements: string[] = []
  let parts: string[] = []
  let depth = 0
  for (const [token] of text.matchAll(TOKEN)) {
    const closes = token === ']' || token === '}'
    if (closes) depth--
    const endsElement = (token === ',' && depth === 1) || depth === 0
    if (endsElement && parts.length > 0) {
      elements.push(parts.join(''))
      parts = []
    } else if (depth > 0 && !endsElement) {
      parts.push(token)
    }
    if (isOpening(token)) depth++
  }
  return elements
}

function isOpening(token: string): boolean {
  return token === '[' || token === '{'
}
