/**
 * A generator that is made when it is first asked for something, and that can be left at any time: what it waits for then is told by the signal. In an
 * async generator function alone `return()` lines up behind the pending `next()`.
 */
export function leavable<Item>(
  make: (left: AbortSignal) => Promise<AsyncGenerator<Item, void, undefined>>,
): AsyncGenerator<Item, void, undefined> {
  const left = new AbortController()
  const items = run()
  async function* run(): AsyncGenerator<Item, void, undefined> {
    yield* await make(left.signal)
  }
  const leave = async (): Promise<IteratorResult<Item, void>> => {
    left.abort(LEFT)
    await items.return().catch(() => {})
    return { done: true, value: undefined }
  }
  return {
    next: async () => {
      try {
        return await items.next()
      } catch (error) {
        if (error === LEFT) return { done: true, value: undefined }
        throw error
      }
    },
    return: leave,
    throw: async (error) => {
      await leave()
      throw error
    },
    [Symbol.asyncIterator]() {
      return this
    },
    [Symbol.asyncDispose]: async () => void (await leave()),
  }
}

/** The reason of a consumer that has enough. */
const LEFT = new Error('left')
