/** Where the access token is kept: nowhere but in memory, for this tab, or in this browser. */
export type TokenPlace = 'memory' | 'tab' | 'browser'

const KEY = 'headwater-console-token'

/**
 * The access token that the user has asked to keep for a server. Storage that is not available, as in a
 * sandboxed frame, counts as empty.
 */
export class Credentials {
  readonly #key: string

  constructor(url: string) {
    this.#key = `${KEY}:${url}`
  }

  /** The token of this tab, else that of this browser. */
  load(): string | undefined {
    return this.#read(() => sessionStorage) ?? this.#read(() => localStorage)
  }

  /** Keeps the token in one place and removes it from the others. */
  save(token: string, place: TokenPlace): void {
    this.clear()
    if (place === 'memory') return
    try {
      const storage = place === 'tab' ? sessionStorage : localStorage
      storage.setItem(this.#key, token)
    } catch {
      // The token stays in memory.
    }
  }

  /** Removes the token from every place. */
  clear(): void {
    for (const storage of [() => sessionStorage, () => localStorage]) {
      try {
        storage().removeItem(this.#key)
      } catch {
        // Nothing is kept there.
      }
    }
  }

  #read(storage: () => Storage): string | undefined {
    try {
      return storage().getItem(this.#key) ?? undefined
    } catch {
      return undefined
    }
  }
}
