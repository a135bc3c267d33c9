/** Throws unless every number in the value is an integer from 0 to 2^53 - 1. */
export function checkNumbers(value: unknown): void {
  if (typeof value === 'number') {
    if (!Number.isSafeInteger(value) || value < 0) throw new Error(`it gives the number ${value}`)
  } else if (typeof value === 'object' && value !== null && !ArrayBuffer.isView(value)) {
    for (const member of Object.values(value)) checkNumbers(member)
  }
}
