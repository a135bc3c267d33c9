import fc from 'fast-check'

/** The number of runs of a property whose runs take long: a share of what other properties have. */
export function shareOfRuns(share: number): { readonly numRuns: number } {
  return { numRuns: Math.ceil(share * fc.readConfigureGlobal().numRuns!) }
}
