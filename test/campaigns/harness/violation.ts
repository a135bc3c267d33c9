/** An observation that contradicts a promise. */
export class Violation extends Error {
  readonly expected: string
  readonly found: string

  constructor(expected: string, found: string) {
    super(`expected: ${expected}\nfound: ${found}`)
    this.name = 'Violation'
    this.expected = expected
    this.found = found
  }
}
