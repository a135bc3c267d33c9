/**
 * Loads the code that the library loads on first use. A campaign does this before it begins: how long that
 * takes must not change the order of what happens.
 */
export async function loadCode(): Promise<void> {
  await Promise.all([
    import('../../adapters/client/compressed-frames.ts'),
    import('../../adapters/client/extended-append.ts'),
    import('../../adapters/client/repeated-append.ts'),
    import('../../adapters/client/unsent.ts'),
    import('../../adapters/storage/memory/packed.ts'),
    import('../../adapters/sync/earlier-history.ts'),
    import('../../adapters/sync/mirror-connection.ts'),
    import('../../adapters/sync/outbox-sender.ts'),
    import('../../adapters/sync/synced-changes.ts'),
    import('../../src/api/session-parts.ts'),
    import('../../src/core/append-rules.ts'),
    import('../../src/engine/encryption/cipher-availability.ts'),
    import('../../src/engine/encryption/stream-codec.ts'),
    import('../../src/engine/service/control.ts'),
    import('../../src/engine/service/tokens/index.ts'),
    import('../../src/wire/decode-error.ts'),
  ])
}
