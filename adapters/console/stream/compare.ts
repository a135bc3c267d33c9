/** How a value of a record relates to that of a query; `~` is "contains, in any case". */
export type Operator = '=' | '<' | '<=' | '>' | '>=' | '~'

const NUMBER = /^-?\d+(\.\d+)?(e[-+]?\d+)?$/i
const INTEGER = /^-?\d+$/
/** Numbers with more digits are not exact in JavaScript. */
const EXACT_DIGITS = 15

/** Compares as numbers if both are, however many digits integers have, else as text by code units. */
export function compares(value: string, operator: Operator, other: string): boolean {
  if (operator === '~') return value.toLowerCase().includes(other.toLowerCase())
  const [a, b] = comparable(value, other)
  if (operator === '=') return a === b
  return operator[0] === '<'
    ? a < b || (operator === '<=' && a === b)
    : a > b || (operator === '>=' && a === b)
}

function comparable(a: string, b: string): readonly [string | number | bigint, string | number | bigint] {
  if (!NUMBER.test(a) || !NUMBER.test(b)) return [a, b]
  const isLong = a.length > EXACT_DIGITS || b.length > EXACT_DIGITS
  if (isLong && INTEGER.test(a) && INTEGER.test(b)) return [BigInt(a), BigInt(b)]
  return [Number(a), Number(b)]
}
