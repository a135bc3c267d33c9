import { nodeCrypto } from '../node-crypto.ts'
import { aesGcmOfNode } from './aes-gcm-node.ts'
import { aesGcmOfWeb } from './aes-gcm-web.ts'
import type { CipherSuite } from './cipher-suite.ts'

/** The runtime's own AES-256-GCM. Not to be asked for where `checkCipher` says that there is none. */
export function aesGcm(): CipherSuite {
  const node = nodeCrypto()
  return node === undefined ? aesGcmOfWeb(globalThis.crypto.subtle) : aesGcmOfNode(node)
}
