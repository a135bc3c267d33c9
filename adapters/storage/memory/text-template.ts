import type { FieldReader, FieldWriter } from './packed-fields.ts'
import { ID_BYTES, idOfWords, parseId, WORDS } from './packed-ids.ts'

// JSON texts have no such characters.
const NAME = '\u0001'
const ID = '\u0002'
const TIME = '\u0003'
const MARK = new RegExp(`[${NAME}-${TIME}]`, 'g')

/** Ids and times in milliseconds. */
const VARIABLE = /[0-9a-f]{32}|[1-9][0-9]{12}/g

/** A text with marks for what differs among the documents of a collection. */
export interface Template {
  readonly text: string
  /** The texts that the marks stand for, except the name. */
  readonly variables: readonly string[]
}

/** Returns the template of the JSON text of a document, which may contain the last part of its key. */
export function templateOf(json: string, key: string): Template {
  const variables: string[] = []
  const name = quotedName(key)
  const at = json.indexOf(name)
  const unnamed = at < 0 ? json : json.slice(0, at) + NAME + json.slice(at + name.length)
  const text = unnamed.replace(VARIABLE, (variable) => {
    variables.push(variable)
    return variable.length === 2 * ID_BYTES ? ID : TIME
  })
  return { text, variables }
}

/** The id that is written or read, and its bytes. */
const ID_WORDS = new Uint32Array(WORDS)
const ID_AS_BYTES = new Uint8Array(ID_WORDS.buffer)

/** Writes variables, which are read with the template. */
export function writeVariables(fields: FieldWriter, variables: readonly string[]): void {
  for (const variable of variables) {
    if (parseId(variable, ID_WORDS)) fields.raw(ID_AS_BYTES)
    else fields.number(Number(variable))
  }
}

/** Returns the text of a template and of variables that were written. */
export function filledTemplate(template: string, key: string, fields: FieldReader): string {
  return template.replace(MARK, (mark) => {
    if (mark === NAME) return quotedName(key)
    if (mark === TIME) return String(fields.number())
    ID_AS_BYTES.set(fields.raw(ID_BYTES))
    return idOfWords(ID_WORDS)
  })
}

function quotedName(key: string): string {
  return `"${key.slice(key.lastIndexOf('\0') + 1)}"`
}
