/** Returns what is wrong, or undefined. What a wrong one is, is for the caller to say. */
export function locationNameProblem(name: string): string | undefined {
  return /^[A-Za-z0-9:.-]{1,64}$/.test(name)
    ? undefined
    : 'location must be 1 to 64 letters, digits, colons, hyphens and dots'
}
