import type { Storage, StorageManifest, StorageSession } from '../../src/storage/contract.ts'

/** Replaces some calls and manifest fields of a storage. */
export function wrapped(
  inner: Storage,
  manifest: Partial<StorageManifest>,
  wrap: (session: StorageSession) => Partial<StorageSession>,
): Storage {
  return {
    manifest: { ...inner.manifest, ...manifest },
    async open(context) {
      const session = await inner.open(context)
      const replaced = wrap(session)
      return new Proxy(session, {
        get: (target, property: keyof StorageSession) => replaced[property] ?? target[property]?.bind(target),
      })
    },
  }
}

/** A storage that loses all its notifications of changes. */
export function silent(inner: Storage, notifications: 'hint' | 'none'): Storage {
  return {
    manifest: { ...inner.manifest, notifications },
    open: (context) => inner.open({ ...context, onLogChanged: () => {} }),
  }
}
