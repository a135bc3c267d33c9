import type { AppendRequest, Storage, StorageManifest, StorageSession } from '../../src/storage/contract.ts'

/** A storage that holds or fails appends as the test decides. */
export interface GatedStorage extends Storage {
  /** Whether appends wait for `release`. */
  holding: boolean
  readonly held: number
  /** How often `read` was called. */
  readonly reads: number
  /** Called before each append. If it throws, nothing is written. */
  onAppend: (request: AppendRequest) => void
  /** Called after each append. If it throws, the append fails although it was written. */
  onAppended: (request: AppendRequest) => void
  /** A hook that runs before a head is read. If it throws, the read fails. */
  onHead: () => void
  release(count?: number): void
}

export function gated(inner: Storage, manifest: Partial<StorageManifest> = {}): GatedStorage {
  const waiting: (() => void)[] = []
  let reads = 0
  const storage: GatedStorage = {
    manifest: { ...inner.manifest, ...manifest },
    holding: false,
    onAppend: () => {},
    onAppended: () => {},
    onHead: () => {},
    get held() {
      return waiting.length
    },
    get reads() {
      return reads
    },
    release(count = waiting.length) {
      for (const resolve of waiting.splice(0, count)) resolve()
    },
    async open(context) {
      const session = await inner.open(context)
      const append = async (request: AppendRequest) => {
        if (storage.holding) await new Promise<void>((resolve) => waiting.push(resolve))
        storage.onAppend(request)
        await session.append(request)
        storage.onAppended(request)
      }
      const head: StorageSession['head'] = async (...args) => {
        storage.onHead()
        return session.head(...args)
      }
      return new Proxy(session, {
        get: (target, property: keyof StorageSession) => {
          if (property === 'append') return append
          if (property === 'head') return head
          if (property === 'read') reads++
          return target[property]?.bind(target)
        },
      })
    },
  }
  return storage
}
