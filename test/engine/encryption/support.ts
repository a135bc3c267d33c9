import { aegis256 } from '../../../adapters/aegis-256/index.ts'
// Preloads the code that engines load lazily, so that one turn of the virtual clock is enough.
import '../../../src/engine/encryption/stream-codec.ts'
import { aesGcmOfNode, aesGcmOfWeb } from '../../../src/engine/encryption/aes-gcm.ts'
import type { Basin, CipherSuite, HeadwaterError, OpenOptions, Stream } from '../../../src/index.ts'
import type { EncryptionKeyInput } from '../../../src/model/encryption-key.ts'
import { type NodeCrypto, nodeCrypto } from '../../../src/runtime/node.ts'
import { openEngine, type TestEngine } from '../../support/index.ts'

export const aesOfNode = aesGcmOfNode(nodeCrypto() as NodeCrypto)
export const aesOfWeb = aesGcmOfWeb(globalThis.crypto.subtle)
export const aegis = await aegis256()

/** The two ciphers. */
export const CIPHERS: [string, CipherSuite][] = [
  ['aes-256-gcm', aesOfNode],
  ['aegis-256', aegis],
]

/** Every implementation. */
export const SUITES: [string, CipherSuite][] = [
  ['aes-256-gcm by node:crypto', aesOfNode],
  ['aes-256-gcm by WebCrypto', aesOfWeb],
  ['aegis-256 by libsodium', aegis],
]

export function key(fill: number): Uint8Array {
  return new Uint8Array(32).fill(fill)
}

export interface EncryptedEngine extends TestEngine {
  /** Its streams are encrypted. */
  readonly basin: Basin
  /** The stream `stream` of that basin, which exists, with a key: `key(1)` if none is given. */
  with(encryptionKey?: EncryptionKeyInput): Stream
}

export async function openEncrypted(
  suite: CipherSuite,
  options: Partial<OpenOptions> = {},
): Promise<EncryptedEngine> {
  const engine = await openEngine({ ciphers: [suite], ...options })
  await engine.hw.ensureBasin('encrypted', { streamCipher: suite.name })
  const basin = engine.hw.basin('encrypted')
  await basin.ensureStream('stream')
  return {
    ...engine,
    basin,
    with: (encryptionKey = key(1)) => basin.stream('stream', { encryptionKey }),
  }
}

/** The code and message of the failure, or `ok`. */
export async function outcome(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => 'ok',
    (error: HeadwaterError) => `${error.status} ${error.code}: ${error.message}`,
  )
}

/** A suite whose `seal` resolves when the test releases it, in the order of the test. */
interface HeldSuite extends CipherSuite {
  /** The number of waiting calls. */
  readonly held: number
  /** Resolves the waiting call at this index. */
  release(index: number): void
  fail(index: number, error: unknown): void
}

export function heldSuite(inner: CipherSuite): HeldSuite {
  const waiting: { resolve: () => void; reject: (error: unknown) => void }[] = []
  return {
    ...inner,
    get held() {
      return waiting.length
    },
    release: (index) => waiting.splice(index, 1)[0]!.resolve(),
    fail: (index, error) => waiting.splice(index, 1)[0]!.reject(error),
    async seal(...args) {
      await new Promise<void>((resolve, reject) => waiting.push({ resolve, reject }))
      return inner.seal(...args)
    },
  }
}

/** A suite whose `open` waits while the test holds it. */
export interface SlowSuite extends CipherSuite {
  slow: boolean
  /** How often `open` was called. */
  opens: number
  /** How many of these calls wait. */
  readonly waiting: number
  /** Resolves all waiting calls. */
  release(): void
}

export function slowSuite(inner: CipherSuite): SlowSuite {
  const waiting: (() => void)[] = []
  const suite: SlowSuite = {
    ...inner,
    slow: false,
    opens: 0,
    get waiting() {
      return waiting.length
    },
    release() {
      for (const resolve of waiting.splice(0)) resolve()
    },
    open(...args) {
      suite.opens++
      if (!suite.slow) return inner.open(...args)
      return new Promise<void>((resolve) => waiting.push(resolve)).then(() => inner.open(...args))
    },
  }
  return suite
}
