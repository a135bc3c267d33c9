const { TEST_RUN } = process.env

/**
 * `npm test` is a quick run: of fewer files, with less work each. A small run is of all files, with as little
 * work. All others are full: `npm run test:full`, and Vitest without a script.
 */
export const IS_QUICK_RUN = TEST_RUN === 'quick'
const IS_SMALL_RUN = IS_QUICK_RUN || TEST_RUN === 'small'

/** Returns the size, or the selection, for the kind of run that this is. */
export function byRun<Value>({ quick, full }: { readonly quick: Value; readonly full: Value }): Value {
  return IS_SMALL_RUN ? quick : full
}
