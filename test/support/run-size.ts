/** `npm test` is a quick run. All others are full: `npm run test:full`, and Vitest without a script. */
const IS_QUICK_RUN = process.env.TEST_RUN === 'quick'

/** Returns the size, or the selection, for the kind of run that this is. */
export function byRun<Value>({ quick, full }: { readonly quick: Value; readonly full: Value }): Value {
  return IS_QUICK_RUN ? quick : full
}
