const { TEST_RUN } = process.env

/**
 * A quick run (`npm test`) runs fewer files, and does less work in each. A small run runs all files with the
 * work of a quick one. Others are full: `npm run test:full`, and Vitest without a script.
 */
export const IS_QUICK_RUN = TEST_RUN === 'quick'
const IS_SMALL_RUN = IS_QUICK_RUN || TEST_RUN === 'small'

/** Returns the size, or the selection, for the kind of run that this is. */
export function byRun<Value>({ quick, full }: { readonly quick: Value; readonly full: Value }): Value {
  return IS_SMALL_RUN ? quick : full
}
