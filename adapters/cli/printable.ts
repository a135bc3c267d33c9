const ROOT_TOKEN_CHARACTERS_MIN = 16
/** Control characters, line separators and marks of writing direction: a terminal obeys them. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/** Text from elsewhere, harmless to a terminal and on one line. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, (character) => {
    return `\\u{${character.codePointAt(0)!.toString(16)}}`
  })
}

/** A part of the command line, for an error. What is as long as a token might be one in a wrong place, which errors must not tell. */
export function shown(text: string): string {
  if (text === '') return 'nothing'
  return text.length < ROOT_TOKEN_CHARACTERS_MIN ? printable(text) : '(what was given)'
}
