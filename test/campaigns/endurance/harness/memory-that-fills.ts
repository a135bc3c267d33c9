import type { Storage, StorageContext } from '../../../../src/storage/contract.ts'
import { StorageFailure } from '../../../../src/storage/errors.ts'

/** A storage that rejects writes while it is full, as one with a quota does. */
export class MemoryThatFills implements Storage {
  isFull = false
  readonly manifest: Storage['manifest']
  readonly #inner: Storage

  constructor(inner: Storage) {
    this.#inner = inner
    this.manifest = inner.manifest
  }

  async open(context: StorageContext) {
    const session = await this.#inner.open(context)
    const unlessFull = async <Result>(work: () => Promise<Result>): Promise<Result> => {
      if (this.isFull) throw new StorageFailure('quota', 'no space left', { nothingWritten: true })
      return work()
    }
    return new Proxy(session, {
      get: (target, name: keyof typeof session) => {
        if (name === 'append')
          return (...args: Parameters<typeof session.append>) => unlessFull(() => target.append(...args))
        if (name === 'commit')
          return (...args: Parameters<typeof session.commit>) => unlessFull(() => target.commit(...args))
        return target[name]?.bind(target)
      },
    })
  }
}
