import type { Storage, StorageManifest, StorageSession } from '../../src/index.ts'

/** A storage of which some calls do something else. */
export function wrapped(
  inner: Storage,
  manifest: Partial<StorageManifest>,
  wrap: (session: StorageSession) => Partial<StorageSession>,
): Storage {
  return {
    manifest: { ...inner.manifest, ...manifest },
    async open(context) {
      const session = await inner.open(context)
      const own = wrap(session)
      return new Proxy(session, {
        get: (target, property: keyof StorageSession) => own[property] ?? target[property]?.bind(target),
      })
    },
  }
}
