/** Does something without the class `Buffer` of Node. */
export function asInBrowser<Result>(work: () => Result): Result {
  const { Buffer } = globalThis
  Reflect.deleteProperty(globalThis, 'Buffer')
  try {
    return work()
  } finally {
    Object.assign(globalThis, { Buffer })
  }
}
