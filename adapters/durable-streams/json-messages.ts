import { lossyTextOf, textOf } from '../../src/model/bytes.ts'
import { BATCH_RECORDS_MAX } from '../../src/model/limits.ts'
import { DurableStreamsError } from './durable-streams-error.ts'

/**
 * The messages of a JSON body: the elements of an array, or else one value. They are pieces of the text, so
 * that numbers and the order of members stay as they are. Stops after one more than a batch may have. Throws
 * 400 if the body is not JSON.
 */
export function jsonMessages(body: Uint8Array): readonly string[] {
  const text = textOf(body)
  const value = text === undefined ? INVALID : parsed(text)
  if (value === INVALID) throw new DurableStreamsError(400, 'the body is not valid JSON')
  const trimmed = text!.trim()
  if (!Array.isArray(value)) return [trimmed]
  // One element, as most clients send it, has no comma to look for.
  return value.length === 1 ? [trimmed.slice(1, -1).trim()] : elementsOf(trimmed)
}

const INVALID = Symbol('invalid')

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return INVALID
  }
}

function isJson(text: string): boolean {
  return parsed(text) !== INVALID
}

const STRUCTURE = /["[\]{},]/g

/** The elements of an array in valid JSON. */
function elementsOf(array: string): readonly string[] {
  const elements: string[] = []
  let depth = 0
  let start = 1
  STRUCTURE.lastIndex = 0
  for (let match = STRUCTURE.exec(array); match !== null; match = STRUCTURE.exec(array)) {
    const [character] = match
    if (character === '"') STRUCTURE.lastIndex = endOfString(array, match.index)
    else if (character === '[' || character === '{') depth++
    else if (character !== ',') depth--
    const isEnd = depth === 0
    if (!isEnd && (character !== ',' || depth > 1)) continue
    const element = array.slice(start, match.index).trim()
    if (element !== '') elements.push(element)
    if (isEnd || elements.length > BATCH_RECORDS_MAX) break
    start = match.index + 1
  }
  return elements
}

/** The index after the string that begins at `start`. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); ; end = text.indexOf('"', end + 1)) {
    let backslashes = 0
    while (text[end - 1 - backslashes] === '\\') backslashes++
    if (backslashes % 2 === 0) return end + 1
  }
}

/**
 * Returns bodies as a JSON array. One that is not JSON, which another protocol has written, becomes a string.
 */
export function jsonArray(bodies: readonly Uint8Array[]): string {
  const texts = bodies.map(lossyTextOf)
  const array = `[${texts.join(',')}]`
  return isArrayOf(array, texts.length)
    ? array
    : `[${texts.map((text) => (isJson(text) ? text : JSON.stringify(text))).join(',')}]`
}

function isArrayOf(text: string, length: number): boolean {
  const value = parsed(text)
  return Array.isArray(value) && value.length === length
}
