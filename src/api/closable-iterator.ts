/** An async generator whose `return()` ends it, even while `next()` is pending. */
export abstract class ClosableIterator<Item> implements AsyncGenerator<Item, void, undefined> {
  abstract next(): Promise<IteratorResult<Item, void>>

  abstract return(): Promise<IteratorResult<Item, void>>

  async throw(error: unknown): Promise<IteratorResult<Item, void>> {
    await this.return()
    throw error
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return()
  }
}
