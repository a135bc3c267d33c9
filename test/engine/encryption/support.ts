import { aegis256 } from '../../../adapters/aegis-256/index.ts'
import { aesGcmOfNode, aesGcmOfWeb } from '../../../src/engine/encryption/aes-gcm.ts'
import type { Basin, CipherSuite, HeadwaterError, OpenOptions, Stream } from '../../../src/index.ts'
import type { EncryptionKeyInput } from '../../../src/model/encryption-key.ts'
import { type NodeCrypto, nodeCrypto } from '../../../src/runtime/node.ts'
import { afterEachFile } from '../../support/after-file.ts'
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

const engines: TestEngine[] = []
afterEachFile(async () => {
  await Promise.all(engines.splice(0).map(({ hw }) => hw.close()))
})

export async function openEncrypted(
  suite: CipherSuite,
  options: Partial<OpenOptions> = {},
): Promise<EncryptedEngine> {
  const engine = await openEngine({ ciphers: [suite], ...options })
  engines.push(engine)
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

/** A suite whose calls of a kind wait until the test releases them, in the order of the test. */
export interface HeldSuite extends CipherSuite {
  holds: 'seal' | 'open' | 'nothing'
  /** The number of waiting calls. */
  readonly held: number
  /** Ends the waiting call at this index, with the error if there is one. */
  release(index: number, error?: Error): void
}

export function heldSuite(inner: CipherSuite, holds: HeldSuite['holds'] = 'nothing'): HeldSuite {
  const waiting: ((error: Error | undefined) => void)[] = []
  const unless = <Result>(isHeld: boolean, run: () => Result | Promise<Result>) =>
    isHeld
      ? new Promise<void>((resolve, reject) =>
          waiting.push((error) => (error ? reject(error) : resolve())),
        ).then(run)
      : run()
  const suite: HeldSuite = {
    ...inner,
    holds,
    get held() {
      return waiting.length
    },
    release: (index, error) => waiting.splice(index, 1)[0]!(error),
    seal: (...args) => unless(suite.holds === 'seal', () => inner.seal(...args)),
    open: (...args) => unless(suite.holds === 'open', () => inner.open(...args)),
  }
  return suite
}
