import { ROOT_TOKEN_CHARACTERS_MIN } from '../../src/engine/access/token-text.ts'

/** Control characters, line separators and marks of writing direction: a terminal obeys them. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/** Text from elsewhere, harmless to a terminal and on one line. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, (character) => {
    return `\\u{${character.codePointAt(0)!.toString(16)}}`
  })
}

/** A part of the command line, for an error. What is as long as a token might be one in a wrong place, which errors must not tell. */
export function shown(text: string, instead = '(what was given)'): string {
  if (text === '') return 'nothing'
  return text.length < ROOT_TOKEN_CHARACTERS_MIN ? printable(text) : instead
}

/** A message from elsewhere that may repeat a part of the command line, which it then tells as {@link shown} does. */
export function retold(message: string, text: string, instead?: string): string {
  return printable(message).replaceAll(printable(text), shown(text, instead))
}
