import { decodeMappings, encodeMappings } from './source-maps.mjs'

const CONSTANT = /^var ([A-Z][A-Z0-9_]*) = (.+);$/
const STRING = /^"[^"\\]*"$/
const EXPRESSION = /^[\w.+*/|<( )-]+$/

/**
 * Declares the constants of a bundled module, such as `var RETRY_MS = 1e3`, with `const` and at its top. Only
 * there do bundlers put them where they are used; esbuild itself declares everything with `var`. Moves the
 * lines of the source map too.
 */
export function hoistConstants(code, map) {
  const lines = code.split('\n')
  const top = lines.findIndex((line) => line.startsWith('// '))
  const names = new Set()
  const constants = []
  for (const [index, line] of lines.entries()) {
    const [, name, value] = CONSTANT.exec(line) ?? []
    if (name === undefined || !isConstant(value, names)) continue
    names.add(name)
    constants.push(index)
  }
  const isMoved = new Set(constants)
  const rest = [...lines.keys()].filter((index) => !isMoved.has(index))
  const order = [...rest.slice(0, top), ...constants, ...rest.slice(top)]
  const mappings = decodeMappings(map.mappings)
  return {
    code: order
      .map((index) => (isMoved.has(index) ? lines[index].replace('var', 'const') : lines[index]))
      .join('\n'),
    map: { ...map, mappings: encodeMappings(order.map((index) => mappings[index] ?? [])) },
  }
}

function isConstant(value, names) {
  if (STRING.test(value)) return true
  const words = value.match(/[A-Za-z_$][\w$.]*/g) ?? []
  return EXPRESSION.test(value) && words.every((word) => names.has(word) || /^e\d+$/.test(word))
}
